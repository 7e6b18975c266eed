// SPDX-License-Identifier: Apache-2.0

// What the server sends: see the package view.

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

export interface RowUpdate {
  rows: Row[];
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
  decision?: { revision: string; action: string; reason: string; message?: string; time: string };
  conditions: Condition[];
  events: RolloutEvent[];
  interventions?: Intervention[];
  history: HistoryEntry[];
  actions: Action[];
  missing?: string[];
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
