package logfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 15, 12, 0, 0, 5, time.FixedZone("", 3600))

const stamp = "2026-11-15T11:00:00.000000005Z"

func TestRecords(t *testing.T) {
	long := strings.Repeat("x", maxText)
	cases := []struct{ name, chunk, want string }{
		{"nothing", "", ""},
		{"a line", "a\n", "F a\n"},
		{"two lines", "a\nb\n", "F a\nF b\n"},
		{"an empty line", "\n", "F \n"},
		{"no newline", "a", "P a\n"},
		{"a line and a part", "a\nb", "F a\nP b\n"},
		{"a carriage return stays", "10%\r", "P 10%\r\n"},
		{"exactly the limit", long + "\n", "F " + long + "\n"},
		{"one more than the limit", long + "y\n", "P " + long + "\nF y\n"},
		{"twice the limit without end", long + long, "P " + long + "\nP " + long + "\n"},
	}
	for _, c := range cases {
		got := string(records(noon, "stdout", []byte(c.chunk)))
		want := ""
		for _, line := range strings.SplitAfter(c.want, "\n") {
			if line != "" {
				want += stamp + " stdout " + line
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", c.name, got, want)
		}
	}
}

// FuzzRecords: whatever the chunks, a reader that joins the records gets the output back.
func FuzzRecords(f *testing.F) {
	f.Add("a\nb", "c\n\n")
	f.Add(strings.Repeat("z", 3*maxText), "\n")
	f.Fuzz(func(t *testing.T, one, two string) {
		log := string(records(noon, "stderr", []byte(one))) + string(records(noon, "stderr", []byte(two)))
		if got := join(log); got != one+two {
			t.Errorf("got %q, want %q", got, one+two)
		}
	})
}

// join reads a log as the kubelet does: F adds a newline, P does not.
func join(log string) string {
	var out strings.Builder
	for _, line := range strings.Split(strings.TrimSuffix(log, "\n"), "\n") {
		if line == "" {
			continue
		}
		fields := strings.SplitN(line, " ", 4)
		out.WriteString(fields[3])
		if fields[2] == "F" {
			out.WriteByte('\n')
		}
	}
	return out.String()
}

func TestReopenAfterRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pod", "0.log")
	log, err := Open(path, func() time.Time { return noon })
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for step, do := range []func() error{
		func() error { return log.Write("stdout", []byte("before\n")) },
		func() error { return os.Rename(path, path+".old") },
		log.Reopen,
		func() error { return log.Write("stderr", []byte("after\n")) },
	} {
		if err := do(); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
	}
	for file, want := range map[string]string{
		path + ".old": fmt.Sprintf("%s stdout F before\n", stamp),
		path:          fmt.Sprintf("%s stderr F after\n", stamp),
	} {
		got, err := os.ReadFile(file)
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", filepath.Base(file), got, err)
		}
	}
}
