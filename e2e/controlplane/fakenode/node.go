// SPDX-License-Identifier: Apache-2.0

package fakenode

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

const (
	// NodeName is the name of the node.
	NodeName = "fake-node"

	nodeAddress = "10.250.0.1"
	workers     = 4
)

// firstPodAddress is the address of the first pod; later ones count up.
var firstPodAddress = netip.MustParseAddr("10.250.0.2")

// Options say how the node behaves.
type Options struct {
	// ReadyDelay is how long after its start a pod becomes ready.
	ReadyDelay time.Duration
	// Clock tells the time. The real one when nil.
	Clock clock.WithTicker
	// OnError is told what failed; it is tried again all the same. May be nil.
	OnError func(error)
}

// Node is a running fake node.
type Node struct {
	options Options
	client  kubernetes.Interface
	pods    corelisters.PodLister
	nodes   corelisters.NodeLister
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu       sync.Mutex
	next     netip.Addr
	assigned map[types.UID]string // addresses of pods that have one
	load     map[string]int       // pods that were ever assigned, by node of a pool
}

// Run registers the node and serves it until ctx ends. It calls ready once pods
// are being served.
func Run(ctx context.Context, client kubernetes.Interface, options Options, ready func()) error {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if err := Register(ctx, client, MakeNode(NodeName, nil)); err != nil {
		return fmt.Errorf("register the fake node: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer, nodes := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	n := &Node{
		options: options, client: client, pods: informer.Lister(), nodes: nodes.Lister(),
		next: firstPodAddress, assigned: map[types.UID]string{}, load: map[string]int{},
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName](),
			workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Clock: options.Clock}),
	}
	if _, err := informer.Informer().AddEventHandler(n.handler()); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	synced := nodes.Informer().HasSynced
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced, synced) {
		return ctx.Err()
	}
	ready()
	n.work(ctx)
	return nil
}

// work serves the queue until ctx ends.
func (n *Node) work(ctx context.Context) {
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for n.serveNext(ctx) {
			}
		})
	}
	n.beat(ctx)
	n.queue.ShutDown()
	running.Wait()
}

func (n *Node) handler() cache.ResourceEventHandler {
	enqueue := func(object any) {
		if pod, ok := object.(*corev1.Pod); ok {
			n.queue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
	}
}

func (n *Node) serveNext(ctx context.Context) bool {
	key, shutdown := n.queue.Get()
	if shutdown {
		return false
	}
	defer n.queue.Done(key)
	again, err := n.serve(ctx, key)
	switch {
	case errors.Is(err, errNoNode): // nothing has failed
		n.queue.AddAfter(key, lookForNode)
	case err != nil && !errors.Is(err, context.Canceled):
		if n.options.OnError != nil {
			n.options.OnError(fmt.Errorf("fake node: pod %s: %w", key, err))
		}
		n.queue.AddRateLimited(key)
	case again > 0:
		n.queue.AddAfter(key, again)
	default:
		n.queue.Forget(key)
	}
	return true
}

// serve does the next thing that the pod needs and returns when to look again,
// besides when it changes.
func (n *Node) serve(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	pod, err := n.pods.Pods(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	switch {
	case pod.Spec.NodeName == "" && len(pod.Spec.SchedulingGates) == 0 && pod.DeletionTimestamp == nil:
		return 0, n.bind(ctx, pod)
	case !n.serves(pod.Spec.NodeName):
		return 0, nil // another's, not to be scheduled, or of a node that is lost
	case pod.DeletionTimestamp != nil:
		return 0, n.remove(ctx, pod)
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return 0, nil // a test has ended it
	}
	return n.report(ctx, pod)
}

// lookForNode is how long a pod waits until its node is looked for again.
const lookForNode = 250 * time.Millisecond

// errNoNode is tried again, as a scheduler does.
var errNoNode = errors.New("no node of the pool is ready")

// bind assigns the pod to a node, as a scheduler does.
func (n *Node) bind(ctx context.Context, pod *corev1.Pod) error {
	node, err := n.choose(pod)
	if err != nil {
		return err
	}
	if node == "" {
		return errNoNode
	}
	err = n.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	return ignoreGone(err)
}

// remove lets a deleted pod go, as a kubelet does when its containers have ended.
func (n *Node) remove(ctx context.Context, pod *corev1.Pod) error {
	err := n.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)),
		Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
	})
	n.mu.Lock()
	delete(n.assigned, pod.UID)
	n.mu.Unlock()
	return ignoreGone(err)
}

// report writes the status of the pod when it has changed.
func (n *Node) report(ctx context.Context, pod *corev1.Pod) (time.Duration, error) {
	status, again := computeStatus(pod, n.address(pod), n.options.ReadyDelay, n.options.Clock.Now())
	if equality.Semantic.DeepEqual(status, pod.Status) {
		return again, nil
	}
	changed := pod.DeepCopy()
	changed.Status = status
	_, err := n.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	return again, ignoreGone(err)
}

// address is the address of the pod, the same each time.
func (n *Node) address(pod *corev1.Pod) string {
	if pod.Status.PodIP != "" {
		return pod.Status.PodIP
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	address, ok := n.assigned[pod.UID]
	if !ok {
		address = n.next.String()
		n.assigned[pod.UID], n.next = address, n.next.Next()
	}
	return address
}

// ignoreGone forgets errors which mean that the pod has changed or gone since it was
// read: the watch brings the change.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
