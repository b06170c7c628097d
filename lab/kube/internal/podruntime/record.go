package podruntime

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"sallyport.test/lab/shim/control"
	"sallyport.test/lab/shim/spec"
)

// recordFile holds what the runtime knows of a sandbox or container.
const recordFile = "record.json"

// sandboxRecord is the lasting part of a sandbox.
type sandboxRecord struct {
	ID      string       `json:"id"`
	Config  []byte       `json:"config"` // a PodSandboxConfig as protobuf
	Created int64        `json:"createdNanos"`
	State   sandboxState `json:"state"`
	IPs     []string     `json:"ips,omitempty"`
	Process *supervised  `json:"process"`
}

// containerRecord is the lasting part of a container.
type containerRecord struct {
	ID      string         `json:"id"`
	Sandbox string         `json:"sandbox"`
	Config  []byte         `json:"config"` // a ContainerConfig as protobuf
	Spec    spec.Container `json:"spec"`
	LogPath string         `json:"logPath,omitempty"`

	Created  int64 `json:"createdNanos"`
	Started  int64 `json:"startedNanos,omitempty"`
	Finished int64 `json:"finishedNanos,omitempty"`

	State    cri.ContainerState `json:"state"`
	ExitCode int32              `json:"exitCode,omitempty"`
	Reason   string             `json:"reason,omitempty"`
	Message  string             `json:"message,omitempty"`
	Process  *supervised        `json:"process,omitempty"` // once started
}

// writeRecord replaces the record in dir, complete or not at all.
func writeRecord(dir string, record any) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, recordFile)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// adopt reads all records and watches what still runs.
func (r *Runtime) adopt() error {
	err := eachRecord(r.sandboxDir(""), func(dir string, record sandboxRecord) error {
		s := &sandbox{sandboxRecord: record, config: &cri.PodSandboxConfig{}}
		s.Process.dir = dir
		s.Process.watch(func() {})
		r.sandboxes[s.ID] = s
		return proto.Unmarshal(s.Config, s.config)
	})
	if err != nil {
		return err
	}
	return eachRecord(r.containerDir(""), func(dir string, record containerRecord) error {
		c := &container{containerRecord: record, dir: dir, config: &cri.ContainerConfig{}}
		r.containers[c.ID] = c
		switch c.State {
		case cri.ContainerState_CONTAINER_CREATED:
			endForgotten(dir)
		case cri.ContainerState_CONTAINER_RUNNING:
			c.Process.dir = dir
			c.Process.watch(func() { r.ended(c) })
		}
		return proto.Unmarshal(c.Config, c.config)
	})
}

// endForgotten kills a process whose kubelet died between its start and the
// record of it. Usually there is none, and nobody answers.
func endForgotten(dir string) {
	_ = control.Call(dir, control.Request{Op: control.OpSignal, Signal: int(unix.SIGKILL)})
}

// eachRecord calls use for every record below parent. A folder without one is the
// trace of a start that was cut short: it is removed.
func eachRecord[R any](parent string, use func(dir string, record R) error) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		dir := filepath.Join(parent, entry.Name())
		text, err := os.ReadFile(filepath.Join(dir, recordFile))
		if errors.Is(err, fs.ErrNotExist) {
			endForgotten(dir)
			if err := removeDir(dir); err != nil {
				return err
			}
			continue
		}
		var record R
		if err == nil {
			err = json.Unmarshal(text, &record)
		}
		if err == nil {
			err = use(dir, record)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}

// FindLiving is the pid of a process that an earlier runtime left in dir, if there
// is one. Its mount namespace holds the volumes of all pods.
func FindLiving(dir string) (pid int, found bool) {
	records, err := filepath.Glob(filepath.Join(dir, "sandboxes", "*", recordFile))
	if err != nil {
		return 0, false
	}
	for _, path := range records {
		var record sandboxRecord
		text, err := os.ReadFile(path)
		if err != nil || json.Unmarshal(text, &record) != nil || record.Process == nil {
			continue
		}
		if hold, err := record.Process.Monitor.Open(); err == nil {
			hold.Close()
			return record.Process.Monitor.PID, true
		}
	}
	return 0, false
}
