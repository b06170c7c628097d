// Command kube is every server of a cluster in one program; the name it is
// started by says which. One program shares its pages between all parts and links
// once instead of six times. README.md has the list.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"sallyport.test/lab/kube/internal/kubelet"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	case "kube-proxy":
		os.Exit(cli.Run(proxy.NewProxyCommand()))
	case "etcd":
		etcdmain.Main(os.Args)
	case "kubelet":
		os.Exit(kubelet.Main(os.Args))
	default:
		fmt.Fprintf(os.Stderr, "kube: %q is no part of a cluster; link me as kube-apiserver, kube-controller-manager, kube-scheduler, kube-proxy, etcd or kubelet\n", name)
		os.Exit(2)
	}
}
