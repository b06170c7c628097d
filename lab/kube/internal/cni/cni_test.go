package cni

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorder is a plugin that keeps its requests as files and, on ADD, answers with
// two addresses. The file "broken" in its folder makes it fail.
const recorder = `#!/bin/sh
input=$(cat)
echo "$(basename "$0") $CNI_COMMAND $CNI_CONTAINERID $CNI_NETNS $CNI_IFNAME" >> %[1]s/calls
echo "$input" > %[1]s/$(basename "$0").$CNI_COMMAND
if [ $CNI_COMMAND = ADD ] && [ -e %[1]s/$(basename "$0").broken ]; then
	echo '{"code": 11, "msg": "no free address"}'
	exit 1
fi
[ $CNI_COMMAND = ADD ] && echo '{"cniVersion": "0.4.0", "ips": [{"address": "10.1.0.7/24"}, {"address": "fd00::7/64"}]}'
exit 0
`

func network(t *testing.T, config string, plugins ...string) (Network, string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range plugins {
		if err := os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, recorder, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "config.json")
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	return Network{Bin: dir, Config: path}, dir
}

func text(t *testing.T, parts ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

const list = `{"cniVersion": "0.4.0", "name": "lab", "plugins": [
	{"type": "wire", "mtu": 1400},
	{"type": "ports", "capabilities": {"portMappings": true}}]}`

func TestAddAndDeleteRunTheListInOrder(t *testing.T) {
	net, dir := network(t, list, "wire", "ports")
	pod := Attachment{ID: "abc", NetNS: "/proc/7/ns/net", Ports: []PortMapping{{HostPort: 80, ContainerPort: 8080, Protocol: "tcp"}}}
	addresses, err := net.Add(context.Background(), pod)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(addresses) != fmt.Sprint([]netip.Addr{netip.MustParseAddr("10.1.0.7"), netip.MustParseAddr("fd00::7")}) {
		t.Errorf("addresses %v", addresses)
	}
	if err := net.Delete(context.Background(), pod); err != nil {
		t.Fatal(err)
	}
	want := "wire ADD abc /proc/7/ns/net eth0\nports ADD abc /proc/7/ns/net eth0\nports DEL abc /proc/7/ns/net eth0\nwire DEL abc /proc/7/ns/net eth0\n"
	if got := text(t, dir, "calls"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	ports := text(t, dir, "ports.ADD")
	for _, part := range []string{`"name":"lab"`, `"cniVersion":"0.4.0"`, `"hostPort":80`, `"prevResult":{`, `10.1.0.7/24`} {
		if !strings.Contains(ports, part) {
			t.Errorf("%s is not in the second plugin's input %s", part, ports)
		}
	}
	if wire := text(t, dir, "wire.ADD"); !strings.Contains(wire, `"mtu":1400`) || strings.Contains(wire, "runtimeConfig") {
		t.Errorf("the first plugin's input is %s", wire)
	}
}

func TestFailedAddIsUndone(t *testing.T) {
	net, dir := network(t, list, "wire", "ports")
	if err := os.WriteFile(filepath.Join(dir, "ports.broken"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := net.Add(context.Background(), Attachment{ID: "abc"})
	if err == nil || !strings.Contains(err.Error(), "cni plugin ports ADD: no free address") {
		t.Errorf("got %v", err)
	}
	if got := text(t, dir, "calls"); !strings.HasSuffix(got, "ports DEL abc  eth0\nwire DEL abc  eth0\n") {
		t.Errorf("not undone:\n%s", got)
	}
}

func TestHostPortNeedsAPlugin(t *testing.T) {
	net, dir := network(t, `{"cniVersion": "0.4.0", "name": "lab", "type": "wire"}`, "wire")
	_, err := net.Add(context.Background(), Attachment{ID: "abc", Ports: []PortMapping{{HostPort: 80}}})
	if err == nil || !strings.Contains(err.Error(), "hostPort") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "calls")); err == nil {
		t.Error("a plugin ran")
	}
	if _, err := net.Add(context.Background(), Attachment{ID: "abc"}); err != nil {
		t.Errorf("without a port: %v", err)
	}
}

func TestReady(t *testing.T) {
	net, _ := network(t, list)
	if err := net.Ready(); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{``, `{}`, `{"type": "../sh"}`, `{"plugins": [{"name": "x"}]}`} {
		net, _ := network(t, bad)
		if net.Ready() == nil {
			t.Errorf("%s is ready", bad)
		}
	}
	if (Network{Config: filepath.Join(t.TempDir(), "none")}).Ready() == nil {
		t.Error("a missing configuration is ready")
	}
}
