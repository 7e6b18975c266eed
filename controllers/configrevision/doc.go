// SPDX-License-Identifier: Apache-2.0

// Package configrevision makes the contents of ConfigMaps and Secrets part of a
// version of a workload.
//
// A Deployment's template refers to them by name, so a change of their content
// reaches the pods of every version at once and can't be taken back. Here each
// content is kept in an immutable copy, and one annotation of the template says
// which copies the version's pods read:
//
//	serin.dev/configuration: ConfigMap/app=app-6f3c1b2a90,Secret/key=key-0d9e8f7a6b
//
// The pods are created with the names of the copies, which an admission policy
// puts in. The annotation is part of the template, so another content is another
// version: it is released, rolled back and undone like any other, and a pod of an
// old version that is created again reads what it read before.
//
// The package is pure. It never sees a content but to digest or to copy it.
package configrevision
