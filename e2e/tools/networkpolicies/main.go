// SPDX-License-Identifier: Apache-2.0

// Command networkpolicies is kube-network-policies for a node of the local cluster.
//
// The upstream binary takes its credentials from the service account of a pod, and nowhere else.
// It also needs a part of nftables that not every kernel has (CONFIG_NFT_QUEUE) to be handed the
// first packet of each connection. So this command has rules of its own for that, and leaves to
// upstream what matters: to decide about the packet.
//
// Only pods of the named namespaces are concerned, while these have policies: what others send to
// one another is as fast as before. When that changes, the command prints the addresses of those
// that are concerned from now on, in a line that begins with "concerned:".
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
)

// notPossible is the status of the end for a kernel that can't do it.
const notPossible = 3

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig file of the cluster")
	queue := flag.Int("queue", 100, "number of the kernel's queue that is read")
	namespaces := flag.String("namespaces", "", "namespaces whose policies are enforced, with commas between")
	klog.InitFlags(nil)
	flag.Parse()
	err := run(*kubeconfig, *queue, strings.Split(*namespaces, ","))
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	if errors.Is(err, errNotPossible) {
		os.Exit(notPossible)
	}
	os.Exit(1)
}

// run enforces NetworkPolicies until it is told to end.
func run(kubeconfig string, queue int, namespaces []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	access, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	access.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return err
	}
	gate, err := openGate(queue, namespaces)
	if err != nil {
		return err
	}
	return errors.Join(enforce(ctx, client, gate, queue), gate.close())
}

// enforce has kube-network-policies decide about the packets that come through the gate.
func enforce(ctx context.Context, client kubernetes.Interface, gate *gate, queue int) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	controller, err := networkpolicy.NewController(client, factory.Networking().V1().NetworkPolicies(),
		factory.Core().V1().Namespaces(), factory.Core().V1().Pods(), nil, nil, nil, nil,
		networkpolicy.Config{
			QueueID: queue,
			// On this node is no pod, so that upstream's own rules are about none.
			NodeName: "none",
			// Without the interface to container runtimes (NRI) it would crash at the first address
			// that is no pod's. It works where no runtime has that interface.
			NRIdisabled: false,
		})
	if err != nil {
		return err
	}
	if err := follow(ctx, factory, gate); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	return controller.Run(ctx)
}

// follow has the gate be about the pods of namespaces that have policies, as those come and go. The
// controller reads the same caches, so it knows each of these pods by then.
func follow(ctx context.Context, factory informers.SharedInformerFactory, gate *gate) error {
	pods, policies := factory.Core().V1().Pods(), factory.Networking().V1().NetworkPolicies()
	var mu sync.Mutex
	update := func(any) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		p, err1 := pods.Lister().List(labels.Everything())
		n, err2 := policies.Lister().List(labels.Everything())
		addresses := gate.concerned(n, p)
		changed, err3 := gate.guard(addresses)
		if err := errors.Join(err1, err2, err3); err != nil {
			log.Fatal("have the rules be about other pods: ", err)
		}
		if changed {
			fmt.Println("concerned:", addresses)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: update, UpdateFunc: func(_, now any) { update(now) }, DeleteFunc: update}
	_, err1 := pods.Informer().AddEventHandler(handler)
	_, err2 := policies.Informer().AddEventHandler(handler)
	return errors.Join(err1, err2)
}
