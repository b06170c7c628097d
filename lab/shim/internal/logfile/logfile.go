// Package logfile writes a container's output in the format the kubelet reads:
// "<time> stdout|stderr F|P <text>", one record a line. F ends a line of the
// output, P is a part of one that goes on.
package logfile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// maxText is the longest text of one record, as in other runtimes.
const maxText = 16 << 10

// File is an open log. Its methods may be called from several goroutines.
type File struct {
	mu   sync.Mutex
	path string
	file *os.File
	now  func() time.Time
}

// Open appends to the log at path and makes its folder if needed.
func Open(path string, now func() time.Time) (*File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	return &File{path: path, file: file, now: now}, nil
}

func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
}

// Write records a chunk of a stream at once: what does not end in a newline
// becomes a part, so that a reader who follows the log sees a prompt or a
// progress bar when the program shows it, not when the line ends.
func (f *File) Write(stream string, chunk []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.file.Write(records(f.now(), stream, chunk))
	return err
}

// Reopen starts the file anew after the kubelet has moved the old one away.
func (f *File) Reopen() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	file, err := open(f.path)
	if err != nil {
		return err
	}
	f.file.Close()
	f.file = file
	return nil
}

// Close ends the log.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Close()
}

func records(at time.Time, stream string, chunk []byte) []byte {
	var out bytes.Buffer
	stamp := at.UTC().Format(time.RFC3339Nano)
	for len(chunk) > 0 {
		text, tag := chunk, "P"
		next := len(chunk)
		if end := bytes.IndexByte(chunk, '\n'); end >= 0 {
			text, tag, next = chunk[:end], "F", end+1
		}
		if len(text) > maxText {
			text, tag, next = chunk[:maxText], "P", maxText
		}
		fmt.Fprintf(&out, "%s %s %s %s\n", stamp, stream, tag, text)
		chunk = chunk[next:]
	}
	return out.Bytes()
}
