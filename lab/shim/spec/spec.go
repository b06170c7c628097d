// Package spec holds the plain values by which the kubelet's runtime tells the
// shim what to start. It is the only thing the two programs know of each other,
// besides the handshake and the control socket. Read Container first.
package spec

// Process says which program to run and as whom. A container's own process and
// a later exec into the container share it.
type Process struct {
	Args     []string `json:"args"`
	Env      []string `json:"env"`
	Cwd      string   `json:"cwd"`
	Identity Identity `json:"identity"`
	// Terminal asks for a pseudo terminal of the container as standard input and output.
	Terminal bool `json:"terminal,omitempty"`
}

// Identity is what the kernel knows about a process when it decides what the
// process may do.
type Identity struct {
	UID             uint32     `json:"uid"`
	GID             uint32     `json:"gid"`
	Groups          []uint32   `json:"groups,omitempty"`
	Capabilities    Capability `json:"capabilities"`
	NoNewPrivileges bool       `json:"noNewPrivileges,omitempty"`
}

// Mount binds Source of the node to Target in the container.
type Mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"readOnly,omitempty"`
	// Recursive makes everything mounted below read-only too.
	Recursive bool `json:"recursive,omitempty"`
	// Follow lets mounts made later below Source on the node appear (HostToContainer).
	Follow bool `json:"follow,omitempty"`
}

// Namespaces to enter, as paths; an empty path means "stay where the caller is".
// The pid namespace is not here: a process cannot change its own, so the parent
// chooses it (Container.PID).
type Namespaces struct {
	Net string `json:"net,omitempty"`
	IPC string `json:"ipc,omitempty"`
	UTS string `json:"uts,omitempty"`
}

// Container describes one container. Its root is the machine's root, made
// writable by an overlay that only this container sees.
type Container struct {
	Process
	// Scratch is an empty folder of the machine. A tmpfs is mounted on it inside
	// the container's own mount namespace, so nothing is ever written to it.
	Scratch    string     `json:"scratch"`
	Namespaces Namespaces `json:"namespaces"`
	// PID is the pid namespace to enter, as a path; "" makes a new one and "host" keeps the caller's.
	PID string `json:"pid,omitempty"`
	// Binds are mounts of the machine that the overlay does not include.
	Binds         []string `json:"binds,omitempty"`
	Mounts        []Mount  `json:"mounts,omitempty"`
	SharedMemory  string   `json:"sharedMemory,omitempty"`
	MaskedPaths   []string `json:"maskedPaths,omitempty"`
	ReadOnlyPaths []string `json:"readOnlyPaths,omitempty"`
	ReadOnlyRoot  bool     `json:"readOnlyRoot,omitempty"`
	Privileged    bool     `json:"privileged,omitempty"`
}

// HostPID is the value of Container.PID for the caller's own pid namespace.
const HostPID = "host"

// Sandbox describes the process that holds a pod's namespaces.
type Sandbox struct {
	Hostname string            `json:"hostname"`
	Sysctls  map[string]string `json:"sysctls,omitempty"`
	// The namespaces the pod does not share with the node.
	OwnNet bool `json:"ownNet,omitempty"`
	OwnIPC bool `json:"ownIPC,omitempty"`
	OwnPID bool `json:"ownPID,omitempty"`
}

// Monitor asks for one supervised process: a container or a sandbox, never both.
type Monitor struct {
	// Dir is where the control socket and the result appear.
	Dir string `json:"dir"`
	// Log is the file of the container's output; "" drops the output.
	Log string `json:"log,omitempty"`
	// Stdin keeps the container's standard input open for attach; StdinOnce
	// closes it when the first client that sent input has gone.
	Stdin     bool       `json:"stdin,omitempty"`
	StdinOnce bool       `json:"stdinOnce,omitempty"`
	Container *Container `json:"container,omitempty"`
	Sandbox   *Sandbox   `json:"sandbox,omitempty"`
}

// Exec asks for one more process in the namespaces of the process Target.
type Exec struct {
	Process
	Target int `json:"target"`
}

// Result is what remains of a supervised process, in the file ResultFile.
type Result struct {
	ExitCode   int   `json:"exitCode"`
	FinishedAt int64 `json:"finishedAtNanos"`
}

// ResultFile is the name, below Monitor.Dir, of the JSON of a Result. It appears
// complete or not at all, before the monitor ends.
const ResultFile = "result.json"
