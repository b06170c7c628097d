package nodeconfig

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// good is a complete configuration whose files exist.
func good(t *testing.T) map[string]any {
	t.Helper()
	dir := t.TempDir()
	config := map[string]any{"node": "n1", "ips": []string{"10.0.0.1", "fd00::1"}, "dir": dir, "clusterDNS": []string{"10.96.0.53"}}
	for _, field := range []string{"kubeconfig", "clientCA", "certFile", "keyFile", "resolvConf", "cniBin", "shim", "images"} {
		path := filepath.Join(dir, field)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		config[field] = path
	}
	config["cniConfig"] = filepath.Join(dir, "later")
	return config
}

func read(t *testing.T, value any) (Config, error) {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubelet.json")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return Read(path)
}

func TestGoodConfig(t *testing.T) {
	config, err := read(t, good(t))
	if err != nil {
		t.Fatal(err)
	}
	if config.Node != "n1" || config.ClusterDomain != "cluster.local" || len(config.IPs) != 2 {
		t.Errorf("got %+v", config)
	}
}

func TestBadConfigs(t *testing.T) {
	cases := []struct {
		name  string
		field string
		value any
		want  string
	}{
		{"no node", "node", "", "node is missing"},
		{"no address", "ips", []string{}, "ips is empty"},
		{"bad address", "ips", []string{"10.0.0.256"}, "10.0.0.256"},
		{"bad dns", "clusterDNS", []string{"dns"}, `"dns" is not an IP address`},
		{"relative folder", "dir", "here", "not an absolute path"},
		{"missing file", "shim", "/nonexistent/shim", "shim: "},
		{"missing bind", "binds", []string{"/nonexistent"}, "binds: "},
		{"unknown field", "nodeName", "x", "nodeName"},
		{"wrong type", "ips", "10.0.0.1", "ips"},
	}
	for _, c := range cases {
		config := good(t)
		config[c.field] = c.value
		if _, err := read(t, config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing file was accepted")
	}
}
