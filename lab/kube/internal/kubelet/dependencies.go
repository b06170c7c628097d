package kubelet

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	kubeletapp "k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	kubelet "k8s.io/kubernetes/pkg/kubelet"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	kubeletutil "k8s.io/kubernetes/pkg/kubelet/util"
	"k8s.io/kubernetes/pkg/kubelet/watchdog"
	"k8s.io/kubernetes/pkg/util/oom"

	"sallyport.test/lab/kube/internal/nodeconfig"
)

// dependencies are the kubelet's real parts, except those that need cgroups. The
// runtime is missing; the caller adds it.
func dependencies(ctx context.Context, config nodeconfig.Config, server *options.KubeletServer) (*kubelet.Dependencies, error) {
	deps, err := kubeletapp.UnsecuredDependencies(ctx, server, utilfeature.DefaultFeatureGate)
	if err != nil {
		return nil, err
	}
	deps.ContainerManager = cgroupless{cm.NewStubContainerManager()}
	deps.OOMAdjuster = oom.NewFakeOOMAdjuster()
	if deps.CAdvisorInterface, err = newMachine(config); err != nil {
		return nil, err
	}
	if err := addClients(deps, config); err != nil {
		return nil, err
	}
	auth, reloadCA, err := kubeletapp.BuildAuth(types.NodeName(config.Node), deps.KubeClient, server.KubeletConfiguration)
	if err != nil {
		return nil, err
	}
	deps.Auth = auth
	reloadCA(ctx.Done())
	deps.PodStartupLatencyTracker = kubeletutil.NewPodStartupLatencyTracker()
	deps.NodeStartupLatencyTracker = kubeletutil.NewNodeStartupLatencyTracker()
	deps.HealthChecker, err = watchdog.NewHealthChecker(klog.FromContext(ctx))
	return deps, err
}

// addClients makes the usual client and one for heartbeats, which must neither
// queue behind other requests nor wait for an answer longer than a status period.
func addClients(deps *kubelet.Dependencies, config nodeconfig.Config) error {
	usual, err := clientcmd.BuildConfigFromFlags("", config.Kubeconfig)
	if err != nil {
		return err
	}
	usual.QPS, usual.Burst = 50, 100
	client, err := clientset.NewForConfig(usual)
	if err != nil {
		return err
	}
	heartbeat := rest.CopyConfig(usual)
	heartbeat.QPS, heartbeat.Timeout = -1, statusPeriod
	if deps.HeartbeatClient, err = clientset.NewForConfig(heartbeat); err != nil {
		return err
	}
	deps.KubeClient, deps.EventClient = client, client.CoreV1()
	deps.OnHeartbeatFailure = func() {}
	return nil
}
