// SPDX-License-Identifier: Apache-2.0

// Package argo turns the objects of Argo Rollouts (argoproj.io/v1alpha1) into those of
// Serin. It reads them field by field and has no type of Argo's. It is pure.
package argo
