// Package cni runs CNI plugins as the CNI specification 0.4.0 says: one
// program per plugin, the request in the environment, the configuration on
// standard input, the answer on standard output. Read Network first.
package cni

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// interfaceName is the pod's interface, as everywhere.
const interfaceName = "eth0"

// pluginLimit bounds one call of one plugin.
const pluginLimit = 60 * time.Second

// Network wires pods to the node by the plugins of a configuration file.
type Network struct {
	Bin    string // folder of the plugins
	Config string // a plugin's configuration or a list of them
}

// Attachment names one pod's place in the network.
type Attachment struct {
	ID    string        `json:"id"`
	NetNS string        `json:"netns"` // path; empty in Delete if the namespace has gone
	Ports []PortMapping `json:"ports,omitempty"`
}

// PortMapping publishes a port of the pod at the node (hostPort).
type PortMapping struct {
	HostPort      int32  `json:"hostPort"`
	ContainerPort int32  `json:"containerPort"`
	Protocol      string `json:"protocol"`
	HostIP        string `json:"hostIP,omitempty"`
}

type plugin map[string]any

// Ready says why pods cannot be wired yet, or nil.
func (n Network) Ready() error {
	_, err := n.plugins()
	return err
}

// Add wires a pod and returns its addresses in the plugins' order. After an error
// nothing of it remains.
func (n Network) Add(ctx context.Context, a Attachment) ([]netip.Addr, error) {
	plugins, err := n.plugins()
	if err != nil {
		return nil, err
	}
	if len(a.Ports) > 0 && !slices.ContainsFunc(plugins, plugin.mapsPorts) {
		return nil, fmt.Errorf("the pod asks for a hostPort, but no plugin of %s has the capability portMappings", n.Config)
	}
	var result json.RawMessage
	for _, p := range plugins {
		result, err = n.call(ctx, "ADD", p, a, result)
		if err != nil {
			// Plugins must allow a delete of what was never added.
			return nil, errors.Join(err, n.Delete(ctx, a))
		}
	}
	addresses, err := parseAddresses(result)
	if err != nil {
		return nil, errors.Join(err, n.Delete(ctx, a))
	}
	return addresses, nil
}

// Delete undoes Add, last plugin first. Deleting twice is fine.
func (n Network) Delete(ctx context.Context, a Attachment) error {
	plugins, err := n.plugins()
	if err != nil {
		return err
	}
	var failed []error
	for _, p := range slices.Backward(plugins) {
		_, err := n.call(ctx, "DEL", p, a, nil)
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// plugins reads the configuration. Each plugin gets the name and version of the list.
func (n Network) plugins() ([]plugin, error) {
	text, err := os.ReadFile(n.Config)
	if err != nil {
		return nil, err
	}
	var list struct {
		Name       string   `json:"name"`
		CNIVersion string   `json:"cniVersion"`
		Plugins    []plugin `json:"plugins"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", n.Config, err)
	}
	if len(list.Plugins) == 0 { // not a list but a single plugin
		var single plugin
		if err := json.Unmarshal(text, &single); err != nil {
			return nil, fmt.Errorf("%s: %w", n.Config, err)
		}
		list.Plugins = []plugin{single}
	}
	for _, p := range list.Plugins {
		if kind, _ := p["type"].(string); kind == "" || filepath.Base(kind) != kind {
			return nil, fmt.Errorf("%s: a plugin has no type, or one that is not a plain name", n.Config)
		}
		p["name"], p["cniVersion"] = list.Name, list.CNIVersion
	}
	return list.Plugins, nil
}

func (p plugin) mapsPorts() bool {
	capabilities, _ := p["capabilities"].(map[string]any)
	return capabilities["portMappings"] == true
}

// call runs one plugin. previous is the answer of the plugin before it, if any.
func (n Network) call(ctx context.Context, command string, p plugin, a Attachment, previous json.RawMessage) (json.RawMessage, error) {
	input := plugin{}
	for key, value := range p {
		input[key] = value
	}
	if p.mapsPorts() {
		input["runtimeConfig"] = map[string]any{"portMappings": a.Ports}
	}
	if previous != nil {
		input["prevResult"] = previous
	}
	config, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, pluginLimit)
	defer cancel()
	kind := p["type"].(string) // checked in plugins
	cmd := exec.CommandContext(ctx, filepath.Join(n.Bin, kind))
	cmd.Env = append(os.Environ(), "CNI_COMMAND="+command, "CNI_CONTAINERID="+a.ID, "CNI_NETNS="+a.NetNS, "CNI_IFNAME="+interfaceName, "CNI_PATH="+n.Bin)
	cmd.Stdin = bytes.NewReader(config)
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cni plugin %s %s: %w", kind, command, explain(err, output, stderr.Bytes()))
	}
	return output, nil
}

// explain prefers what the plugin said to how it ended.
func explain(err error, output, stderr []byte) error {
	var said struct{ Msg, Details string }
	if json.Unmarshal(output, &said) == nil && said.Msg != "" {
		return errors.New(said.Msg + said.Details)
	}
	if text := bytes.TrimSpace(stderr); len(text) > 0 {
		return fmt.Errorf("%w: %s", err, text)
	}
	return err
}

func parseAddresses(result json.RawMessage) ([]netip.Addr, error) {
	var parsed struct {
		IPs []struct {
			Address netip.Prefix `json:"address"`
		} `json:"ips"`
	}
	if err := json.Unmarshal(result, &parsed); err != nil {
		return nil, fmt.Errorf("answer of the cni plugin: %w", err)
	}
	if len(parsed.IPs) == 0 {
		return nil, errors.New("the cni plugins gave no address")
	}
	var addresses []netip.Addr
	for _, ip := range parsed.IPs {
		addresses = append(addresses, ip.Address.Addr())
	}
	return addresses, nil
}
