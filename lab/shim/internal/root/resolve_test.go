package root

import (
	"os"
	"path/filepath"
	"testing"
)

func TestResolve(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"run/user", "var", "etc"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"var/run":      "/run",
		"var/relative": "../run",
		"etc/out":      "../../../../etc",
		"etc/chain":    "/var/run/user",
		"etc/loop":     "/etc/loop",
		"etc/dangling": "/not/there",
	} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]string{
		"/":                      "",
		"/etc":                   "etc",
		"/var/run":               "run",
		"/var/run/secrets/x":     "run/secrets/x",
		"/var/relative/user":     "run/user",
		"/etc/out/passwd":        "etc/passwd",
		"/etc/chain/../x":        "run/x",
		"/../../x":               "x",
		"/new/folder//y/":        "new/folder/y",
		"/etc/dangling/file":     "not/there/file",
		"/var/run/../etc/chain/": "run/user",
	}
	for path, want := range cases {
		got, err := resolve(root, path)
		if err != nil || got != filepath.Join(root, want) {
			t.Errorf("%s: got %s, %v; want %s in the root", path, got, err, want)
		}
	}
	if got, err := resolve(root, "/etc/loop/x"); err == nil {
		t.Errorf("a loop of links gave %s", got)
	}
}

func TestMakeTarget(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []bool{true, false} {
		path := map[bool]string{true: "/a/b", false: "/c/d"}[folder]
		for range 2 { // making it again must change nothing
			target, err := makeTarget(root, path, folder)
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(target); err != nil || info.IsDir() != folder {
				t.Errorf("%s: %v, %v", path, info, err)
			}
		}
	}
}
