// Package nodeconfig reads the configuration file of one lab node. README.md
// of lab/kube describes every field; the driver writes the file.
package nodeconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
)

// Config is one node of the lab.
type Config struct {
	Node           string            `json:"node"`
	IPs            []string          `json:"ips"`
	Dir            string            `json:"dir"`
	Kubeconfig     string            `json:"kubeconfig"`
	ClientCA       string            `json:"clientCA"`
	CertFile       string            `json:"certFile"`
	KeyFile        string            `json:"keyFile"`
	ClusterDNS     []string          `json:"clusterDNS"`
	ClusterDomain  string            `json:"clusterDomain"`
	ResolvConf     string            `json:"resolvConf"`
	CNIBin         string            `json:"cniBin"`
	CNIConfig      string            `json:"cniConfig"`
	Shim           string            `json:"shim"`
	Images         string            `json:"images"`
	Binds          []string          `json:"binds"`
	RegisterLabels map[string]string `json:"registerLabels"`
	BootID         string            `json:"bootID"`
}

// Read loads and checks the file. The error is one sentence that names the field.
func Read(path string) (Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, err
	}
	config := Config{ClusterDomain: "cluster.local"}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&config); err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	if err := config.check(); err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return config, nil
}

func (c Config) check() error {
	if c.Node == "" {
		return errors.New("node is missing")
	}
	if len(c.IPs) == 0 {
		return errors.New("ips is empty")
	}
	if err := addresses("ips", c.IPs); err != nil {
		return err
	}
	if err := addresses("clusterDNS", c.ClusterDNS); err != nil {
		return err
	}
	return c.checkPaths()
}

// checkPaths wants absolute paths, because the kubelet and its containers have
// different working directories, and files that exist.
func (c Config) checkPaths() error {
	paths := []struct {
		field, path string
		later       bool // may appear after the start
	}{
		{"dir", c.Dir, false}, {"kubeconfig", c.Kubeconfig, false}, {"clientCA", c.ClientCA, false},
		{"certFile", c.CertFile, false}, {"keyFile", c.KeyFile, false}, {"resolvConf", c.ResolvConf, false},
		{"cniBin", c.CNIBin, false}, {"cniConfig", c.CNIConfig, true}, {"shim", c.Shim, false}, {"images", c.Images, false},
	}
	for _, p := range paths {
		if p.path == "" {
			return fmt.Errorf("%s is missing", p.field)
		}
		if !filepath.IsAbs(p.path) {
			return fmt.Errorf("%s %q is not an absolute path", p.field, p.path)
		}
		if _, err := os.Stat(p.path); err != nil && !p.later {
			return fmt.Errorf("%s: %w", p.field, err)
		}
	}
	for _, path := range c.Binds {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("binds: %q is not an absolute path", path)
		}
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("binds: %w", err)
		}
	}
	return nil
}

func addresses(field string, list []string) error {
	for _, text := range list {
		if _, err := netip.ParseAddr(text); err != nil {
			return fmt.Errorf("%s: %q is not an IP address", field, text)
		}
	}
	return nil
}
