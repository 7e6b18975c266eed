// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Configuration says which contents belong to a version, besides the pod template.
type Configuration struct {
	// kinds of objects whose contents belong to a version: ConfigMap, Secret. A
	// change of the content of such an object that the workload's template refers to
	// is released like a change of the template itself. The operator must be allowed
	// to read Secrets in this namespace; see the value configuration.secretNamespaces
	// of its chart.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	Kinds []ConfigurationKind `json:"kinds"`

	// except are objects whose changes reach all pods at once, as they do without
	// Serin: switches of features, or lists that the app reads again by itself.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Except []ConfigurationReference `json:"except,omitempty"`
}

// ConfigurationKind is the kind of an object that holds configuration.
//
// +kubebuilder:validation:Enum=ConfigMap;Secret
type ConfigurationKind string

// Kinds of objects that hold configuration.
const (
	// ConfigurationConfigMap is a ConfigMap.
	ConfigurationConfigMap ConfigurationKind = "ConfigMap"
	// ConfigurationSecret is a Secret.
	ConfigurationSecret ConfigurationKind = "Secret"
)

// ConfigurationReference names an object in the namespace of the Rollout.
type ConfigurationReference struct {
	// kind of the object: ConfigMap or Secret.
	// +required
	Kind ConfigurationKind `json:"kind"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ConfigurationStatus is the content of one object that was last made part of a
// version.
type ConfigurationStatus struct {
	// kind of the object: ConfigMap or Secret.
	// +required
	Kind ConfigurationKind `json:"kind"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// copy is the name of the immutable object that keeps the content. Where the
	// workload's template names another copy, the workload was set back to an
	// earlier version.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Copy string `json:"copy"`
}
