package kubelet

import (
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"

	"sallyport.test/lab/kube/internal/nodeconfig"
)

const (
	// statusPeriod and leaseSeconds make a lost node show within seconds. The lease
	// is renewed every quarter of its time.
	statusPeriod = 2 * time.Second
	leaseSeconds = 4
	// syncPeriod is how often a pod is looked at without a reason.
	syncPeriod = 10 * time.Second
	// accessPeriod is how long an answer of the API server about a caller is kept.
	accessPeriod = 30 * time.Second
)

// nodeOptions is the kubelet's configuration for a node of the lab.
func nodeOptions(config nodeconfig.Config) (*options.KubeletServer, error) {
	s, err := options.NewKubeletServer()
	if err != nil {
		return nil, err
	}
	s.KubeConfig = config.Kubeconfig
	s.HostnameOverride = config.Node
	s.NodeIP = strings.Join(config.IPs, ",")
	s.NodeLabels = config.RegisterLabels
	s.RootDirectory = filepath.Join(config.Dir, "root")
	s.CertDirectory = filepath.Join(config.Dir, "pki")

	c := &s.KubeletConfiguration
	c.PodLogsDir = filepath.Join(config.Dir, "logs")
	c.VolumePluginDir = filepath.Join(config.Dir, "volumeplugins")
	c.ClusterDNS = config.ClusterDNS
	c.ClusterDomain = config.ClusterDomain
	c.ResolverConfig = config.ResolvConf
	c.ConfigMapAndSecretChangeDetectionStrategy = kubeletconfig.WatchChangeDetectionStrategy
	c.NodeStatusUpdateFrequency = metav1.Duration{Duration: statusPeriod}
	c.NodeLeaseDurationSeconds = leaseSeconds
	c.SyncFrequency = metav1.Duration{Duration: syncPeriod}
	// Never dialled, but checked: the runtime is in this process.
	c.ContainerRuntimeEndpoint = "unix:///in-process"
	c.ImageServiceEndpoint = c.ContainerRuntimeEndpoint
	serve(c, config)
	withoutCgroups(c)
	return s, nil
}

// serve says who may call the kubelet: holders of a client certificate or token
// to whom the API server grants access to nodes/proxy and the like.
func serve(c *kubeletconfig.KubeletConfiguration, config nodeconfig.Config) {
	c.TLSCertFile, c.TLSPrivateKeyFile = config.CertFile, config.KeyFile
	c.ServerTLSBootstrap, c.RotateCertificates = false, false
	c.HealthzPort, c.ReadOnlyPort = 0, 0
	c.Authentication.X509.ClientCAFile = config.ClientCA
	c.Authentication.Anonymous.Enabled = false
	c.Authentication.Webhook.Enabled = true
	c.Authentication.Webhook.CacheTTL = metav1.Duration{Duration: accessPeriod}
	c.Authorization.Mode = kubeletconfig.KubeletAuthorizationModeWebhook
	c.Authorization.Webhook.CacheAuthorizedTTL = metav1.Duration{Duration: accessPeriod}
	c.Authorization.Webhook.CacheUnauthorizedTTL = metav1.Duration{Duration: accessPeriod}
}

// withoutCgroups turns off what would touch or measure the machine.
func withoutCgroups(c *kubeletconfig.KubeletConfiguration) {
	c.CgroupsPerQOS = false
	c.CgroupRoot, c.KubeletCgroups = "", ""
	c.EnforceNodeAllocatable = []string{}
	c.CPUCFSQuota = false
	c.FailCgroupV1, c.FailSwapOn = false, false
	c.EvictionHard = map[string]string{}
	c.LocalStorageCapacityIsolation = false
}
