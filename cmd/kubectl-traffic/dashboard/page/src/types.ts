// SPDX-License-Identifier: Apache-2.0

// What the server sends: see the package view.

import type { Point } from "./recording";

export type Group = "Failed" | "NeedsUser" | "InProgress" | "Stable" | "Unknown";

export interface Row {
  namespace: string;
  name: string;
  group: Group;
  state: string;
  message: string;
  step?: string;
  stepIndex?: number;
  stepCount?: number;
  requested?: number;
  live?: number;
  evidence?: string;
  threshold?: string;
  verdict?: string;
  stableRevision?: string;
  canaryRevision?: string;
  next: { what: string; at?: string };
}

export interface Scope {
  namespace: string;
  narrowed?: string;
}

export interface Trouble {
  kind: "forbidden" | "missing" | "unreachable";
  message: string;
}

// Named is what each row has.
export interface Named {
  namespace: string;
  name: string;
}

export interface RowUpdate<R> {
  rows: R[];
  gone: string[];
  complete: boolean;
  trouble?: Trouble;
}

export interface Action {
  name: string;
  label: string;
  disabled?: string;
  confirm?: string;
  revision: string;
  step?: number;
  takesReason?: boolean;
}

export interface Step {
  stepIndex: number;
  weight: number;
  state: "Done" | "Present" | "Later" | "Promotion";
  begins?: string;
  ends?: string;
  began?: string;
  waitsFor?: string;
}

export interface Pod {
  name: string;
  state: string;
  ready: boolean;
  restarts: number;
  node?: string;
}

export interface Version {
  role: "stable" | "canary";
  revision: string;
  weight: string;
  ready: number;
  replicas: number;
  images: string[];
  pods: Pod[];
}

export interface Analysis {
  verdict: string;
  reason: string;
  message?: string;
  evidence?: string;
  threshold?: string;
  promotionEvidence?: string;
  promotionThreshold?: string;
  decidingMetric?: string;
  minDetectableEffect?: string;
  canaryRequests?: number;
  canaryFailures?: number;
  stableRequests?: number;
  stableFailures?: number;
  lastWindowEnd?: string;
}

export interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
  lastTransitionTime: string;
}

export interface Intervention {
  action: string;
  stepIndex?: number;
  by?: string;
  reason?: string;
  time: string;
}

export interface HistoryEntry {
  revision: string;
  outcome: string;
  reason?: string;
  message?: string;
  startedAt?: string;
  endedAt: string;
  interventions?: Intervention[];
}

export interface RolloutEvent {
  time: string;
  type: string;
  reason: string;
  message: string;
  count?: number;
}

export interface Release extends Row {
  workload: string;
  service: string;
  router?: string;
  strategy: string;
  paused: boolean;
  timeZone?: string;
  explanation: string[];
  steps: Step[];
  versions: Version[];
  analysis?: Analysis;
  measured?: Point; // the window that was judged last
  decision?: { revision: string; action: string; reason: string; message?: string; time: string };
  conditions: Condition[];
  events: RolloutEvent[];
  interventions?: Intervention[];
  history: HistoryEntry[];
  actions: Action[];
  missing?: string[];
}

export interface CanaryRow extends Named {
  group: Group;
  state: string;
  message: string;
  release: string;
  version: number;
  adopted?: number;
  share: string;
  rollout?: string;
  next: { what: string };
}

export interface Counts {
  requests: number;
  failures: number;
}

export interface CanaryService {
  service: string;
  programmed: boolean;
  proxies?: number;
  ports: { port: string; weight: number }[];
  traffic?: { endedAt: string; seconds: number; stable: Counts; canary: Counts };
}

export interface Canary extends CanaryRow {
  path?: string;
  values?: string;
  secret?: string;
  later?: string[];
  services: CanaryService[];
  workloads: { name: string; replicas: number; readyReplicas: number; handedOver?: boolean; rolled?: string }[];
  decision?: { transition: string; reason: string; message: string; time: string; endedAt?: string };
  delegation?: { rollout: string; weight?: number };
  conditions: Condition[];
  events: RolloutEvent[];
  actions: Action[];
  missing?: string[];
}

export interface CanaryUpdate {
  canary?: Canary;
  gone?: boolean;
  trouble?: Trouble;
}

export interface Share {
  service: string;
  weight: number;
  declared: number;
  programmed?: number;
  ready?: number;
  ports?: { port: string; weight: number }[];
  measured?: number;
  success?: number;
  rps?: number;
  p99?: number;
  check?: { verdict: "Waiting" | "Fits" | "Differs"; message: string; requests: number; share: number; since: string };
}

export interface Split extends Named {
  group: Group;
  state: string;
  message: string;
  service: string;
  router?: string;
  rollout?: string;
  canary?: string;
  shares: Share[];
  mirror?: string;
  unchecked?: string;
  measured?: string;
  window?: number;
}

export interface ReleaseUpdate {
  release?: Release;
  gone?: boolean;
  trouble?: Trouble;
}

export interface Viewer {
  user: string;
  cluster: string;
  readOnly: boolean;
  // logout: the viewer has logged in, and may log out.
  logout: boolean;
}

// Party is one end of calls; what is not known of it has only a name.
export interface Party {
  kind?: string;
  namespace?: string;
  name: string;
}

export interface Call {
  from: Party;
  to: Party;
  successRate?: number; // from 0 to 1
  requestsPerSecond?: number;
  p99Seconds?: number;
}

export interface Calls {
  namespace: string;
  nodes: Party[];
  edges: Call[];
  leftOut?: number;
  missing?: string;
}
