// SPDX-License-Identifier: Apache-2.0

package chart

import (
	_ "helm.sh/helm/v4/pkg/action"
	_ "helm.sh/helm/v4/pkg/engine"
)
