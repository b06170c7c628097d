package images

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func table(t *testing.T, text string) Table {
	t.Helper()
	path := filepath.Join(t.TempDir(), "images.json")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return Table{path}
}

func TestName(t *testing.T) {
	for image, want := range map[string]string{
		"web":                                 "web",
		"web:1.2":                             "web",
		"example.test/a/web:1.2":              "example.test/a/web",
		"example.test:5000/web":               "example.test:5000/web",
		"example.test:5000/web:1.2":           "example.test:5000/web",
		"example.test:5000/web:1@sha256:abcd": "example.test:5000/web",
		"web@sha256:abcd":                     "web",
	} {
		if got := name(image); got != want {
			t.Errorf("%s: got %s, want %s", image, got, want)
		}
	}
}

func TestResolve(t *testing.T) {
	images := table(t, `{
		"short": ["program", "serve"],
		"long": {"command": ["program"], "args": ["default"], "env": {"A": "b"}, "binds": ["/opt"]}
	}`)
	long := Entry{Command: []string{"program"}, Args: []string{"default"}, Env: map[string]string{"A": "b"}, Binds: []string{"/opt"}}
	cases := []struct {
		name          string
		image         string
		command, args []string
		want          Entry
	}{
		{"short form", "short:1", nil, nil, Entry{Command: []string{"program", "serve"}}},
		{"short form with args", "short", nil, []string{"-v"}, Entry{Command: []string{"program", "serve"}, Args: []string{"-v"}}},
		{"long form", "long", nil, nil, long},
		{"args replace the default", "long", nil, []string{"x"}, Entry{Command: long.Command, Args: []string{"x"}, Env: long.Env, Binds: long.Binds}},
		{"a command replaces both", "long", []string{"sh"}, nil, Entry{Command: []string{"sh"}, Env: long.Env, Binds: long.Binds}},
		{"an unknown image with a command", "any", []string{"sh"}, []string{"-c"}, Entry{Command: []string{"sh"}, Args: []string{"-c"}}},
	}
	for _, c := range cases {
		got, err := images.Resolve(c.image, c.command, c.args)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
	_, err := images.Resolve("example.test/any:7", nil, []string{"x"})
	if err == nil || !strings.Contains(err.Error(), images.Path) || !strings.Contains(err.Error(), `"example.test/any"`) {
		t.Errorf("an unknown image without a command: %v", err)
	}
}

func TestChangeHoldsForTheNextContainer(t *testing.T) {
	images := table(t, `{}`)
	if _, known, err := images.Lookup("web"); known || err != nil {
		t.Fatalf("known %v, %v", known, err)
	}
	if err := os.WriteFile(images.Path, []byte(`{"web": ["program"]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, known, err := images.Lookup("web"); !known || err != nil {
		t.Errorf("after the change: known %v, %v", known, err)
	}
}

func TestBadTables(t *testing.T) {
	for _, text := range []string{``, `[]`, `{"a": []}`, `{"a": {"env": {}}}`, `{"a": {"command": ["x"], "comand": 1}}`, `{"a": "x"}`} {
		if entry, _, err := table(t, text).Lookup("a"); err == nil {
			t.Errorf("%s gave %+v", text, entry)
		}
	}
	if _, _, err := (Table{filepath.Join(t.TempDir(), "none")}).Lookup("a"); err == nil {
		t.Error("a missing table was accepted")
	}
}
