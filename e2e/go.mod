module github.com/serin-dev/serin/e2e

go 1.26.0

replace github.com/serin-dev/serin => ../

require (
	golang.org/x/term v0.47.0
	k8s.io/apimachinery v0.37.2
	k8s.io/utils v0.0.0-20260707023825-cf1189d6abe3
)

require (
	github.com/go-logr/logr v1.4.3 // indirect
	golang.org/x/sys v0.49.0 // indirect
	k8s.io/klog/v2 v2.140.0 // indirect
)
