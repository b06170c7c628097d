// Package kubelet runs the real kubelet over the lab's own runtime. It replaces
// cmd/kubelet's main: that one insists on a runtime behind a socket, cgroups and
// cAdvisor. Everything else (probes, volumes, tokens, restarts, leases, exec and
// logs) is Kubernetes' own code. Read run first.
package kubelet

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/klog/v2"
	kubeletapp "k8s.io/kubernetes/cmd/kubelet/app"

	"sallyport.test/lab/kube/internal/cni"
	"sallyport.test/lab/kube/internal/images"
	"sallyport.test/lab/kube/internal/nodeconfig"
	"sallyport.test/lab/kube/internal/podruntime"
)

const usage = `kubelet: the node agent of one lab node

  kubelet -config FILE

Start it in the node's network namespace. lab/kube/README.md describes the file.
`

// Main runs the kubelet until a signal ends it and returns the exit code.
func Main(args []string) int {
	flags := flag.NewFlagSet("kubelet", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	path := flags.String("config", "", "configuration file of the node")
	mounted := flags.Bool("mounted", false, "set by the kubelet itself: it is in its own mount namespace")
	err := flags.Parse(args[1:])
	if errors.Is(err, flag.ErrHelp) {
		fmt.Print(usage)
		return 0
	}
	if err == nil && (*path == "" || flags.NArg() > 0) {
		err = errors.New("give -config FILE and nothing else")
	}
	var config nodeconfig.Config
	if err == nil {
		config, err = nodeconfig.Read(*path)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "kubelet: %v\n", err)
		return 2
	}
	if !*mounted {
		// Only returns on an error: this process becomes itself in another namespace.
		err = enterMounts(config, append(args, "-mounted"))
	} else {
		err = run(genericapiserver.SetupSignalContext(), config)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "kubelet: %v\n", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, config nodeconfig.Config) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	logWarnings()
	runtime, err := podruntime.New(podruntime.Options{
		Node: config.Node, Dir: runtimeDir(config), Shim: config.Shim, Binds: config.Binds,
		Network: cni.Network{Bin: config.CNIBin, Config: config.CNIConfig},
		Images:  images.Table{Path: config.Images},
	})
	if err != nil {
		return err
	}
	go func() {
		if err := runtime.Serve(ctx); err != nil {
			cancel(fmt.Errorf("stream server: %w", err))
		}
	}()
	server, err := nodeOptions(config)
	if err != nil {
		return err
	}
	deps, err := dependencies(ctx, config, server)
	if err != nil {
		return err
	}
	deps.RemoteRuntimeService = runtime
	deps.RemoteImageService = podruntime.Images{Dir: config.Dir}
	// RunKubelet and not Run: the latter dials a runtime's socket in any case.
	if err := kubeletapp.RunKubelet(ctx, server, deps); err != nil {
		return err
	}
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

func runtimeDir(config nodeconfig.Config) string { return filepath.Join(config.Dir, "runtime") }

// logWarnings sends warnings and errors to standard error and drops the rest. klog
// wants a writer for what it does not send there, or it opens files.
func logWarnings() {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "alsologtostderr": "false", "stderrthreshold": "WARNING"} {
		if err := flags.Set(name, value); err != nil {
			panic(err) // a flag of klog itself
		}
	}
	klog.SetOutput(io.Discard)
}
