package spec

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestMonitorSurvivesJSON(t *testing.T) {
	want := Monitor{
		Dir: "/d", Log: "/l", Stdin: true, StdinOnce: true,
		Container: &Container{
			Process: Process{
				Args: []string{"sh", "-c", "echo \x00"}, Env: []string{"A=\n"}, Cwd: "/",
				Identity: Identity{UID: 1, GID: 2, Groups: []uint32{3}, Capabilities: AllCapabilities, NoNewPrivileges: true},
				Terminal: true,
			},
			Scratch: "/s", Namespaces: Namespaces{Net: "/n", IPC: "/i", UTS: "/u"}, PID: HostPID,
			Binds:        []string{"/b"},
			Mounts:       []Mount{{Source: "/a", Target: "/b", ReadOnly: true, Recursive: true, Follow: true}},
			SharedMemory: "/shm", MaskedPaths: []string{"/m"}, ReadOnlyPaths: []string{"/r"},
			ReadOnlyRoot: true, Privileged: true,
		},
		Sandbox: &Sandbox{Hostname: "h", Sysctls: map[string]string{"k": "v"}, OwnNet: true, OwnIPC: true, OwnPID: true},
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Monitor
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestCapabilities(t *testing.T) {
	const netAdmin, netRaw, kill = Capability(1 << 12), Capability(1 << 13), Capability(1 << 5)
	const ordinary = Capability(0xa80425fb)   // what /proc/self/status shows in a container without any settings
	const most = AllCapabilities &^ (1 << 24) // a machine that has no SYS_RESOURCE to give
	cases := []struct {
		name      string
		add, drop []string
		want      Capability
	}{
		{"nothing said", nil, nil, ordinary},
		{"drop all", nil, []string{"ALL"}, 0},
		{"drop all in lower case", nil, []string{"all"}, 0},
		{"drop all, add two", []string{"NET_ADMIN", "CAP_NET_RAW"}, []string{"ALL"}, netAdmin | netRaw},
		{"add one", []string{"net_admin"}, nil, ordinary | netAdmin},
		{"add all", []string{"ALL"}, nil, most},
		{"add all, drop one", []string{"ALL"}, []string{"KILL"}, most &^ kill},
		{"drop one", nil, []string{"KILL"}, ordinary &^ kill},
		{"add and drop the same", []string{"NET_ADMIN"}, []string{"NET_ADMIN"}, ordinary},
	}
	for _, c := range cases {
		got, err := Capabilities(most, c.add, c.drop)
		if err != nil || got != c.want {
			t.Errorf("%s: got %x, %v; want %x", c.name, got, err, c.want)
		}
	}
	for _, bad := range [][]string{{"NET_ADMINS"}, {""}, {"CAP_"}} {
		if _, err := Capabilities(most, bad, nil); err == nil {
			t.Errorf("add %q was accepted", bad)
		}
		if _, err := Capabilities(most, nil, bad); err == nil {
			t.Errorf("drop %q was accepted", bad)
		}
	}
}
