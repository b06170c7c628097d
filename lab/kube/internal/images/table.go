// Package images is the lab's answer to images: a file that says which program of
// the machine an image name stands for.
package images

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Entry is what an image brings along. The short form in the file is a plain list,
// which is Command alone.
type Entry struct {
	// Command is the entry point: a container's args are added to it.
	Command []string `json:"command"`
	// Args are used if the container gives none.
	Args []string `json:"args,omitempty"`
	// Env is set unless the container sets the same name.
	Env map[string]string `json:"env,omitempty"`
	// Binds are folders or files of the machine to show at the same path.
	Binds []string `json:"binds,omitempty"`
}

// Table finds entries in a file. The file is read for every look-up, so that a
// change holds for the next container.
type Table struct{ Path string }

// Lookup finds the entry of an image, whatever its tag or digest.
func (t Table) Lookup(image string) (Entry, bool, error) {
	text, err := os.ReadFile(t.Path)
	if err != nil {
		return Entry{}, false, fmt.Errorf("image table: %w", err)
	}
	var table map[string]Entry
	if err := json.Unmarshal(text, &table); err != nil {
		return Entry{}, false, fmt.Errorf("image table %s: %w", t.Path, err)
	}
	entry, ok := table[name(image)]
	return entry, ok, nil
}

// Resolve is the entry that a container of image with this command runs. Without a
// command the image must be in the table; with one it need not.
func (t Table) Resolve(image string, command, args []string) (Entry, error) {
	entry, known, err := t.Lookup(image)
	if err != nil {
		return Entry{}, err
	}
	if len(command) > 0 {
		entry.Command, entry.Args = command, args
		return entry, nil
	}
	if !known {
		return Entry{}, fmt.Errorf("image %q: the container gives no command and the image table %s has no entry %q", image, t.Path, name(image))
	}
	if len(args) > 0 {
		entry.Args = args
	}
	return entry, nil
}

// UnmarshalJSON reads both forms and refuses unknown fields and an empty command.
func (e *Entry) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		if err := json.Unmarshal(text, &e.Command); err != nil {
			return err
		}
	} else {
		type plain Entry // without this method
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode((*plain)(e)); err != nil {
			return err
		}
	}
	if len(e.Command) == 0 {
		return errors.New("an entry has no command")
	}
	return nil
}

// name is an image reference without digest and tag. A colon before the last
// slash belongs to a registry's port.
func name(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		image = image[:colon]
	}
	return image
}
