package root

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks bounds a chain of symbolic links, as the kernel does.
const maxLinks = 40

// resolve finds where path lies once root is the root directory: links are
// followed inside root and never lead out of it. Parts that do not exist are
// taken as they are. Without it a mount for /var/run would follow the link of
// the machine and land in the machine's /run.
func resolve(root, path string) (string, error) {
	done := "/" // resolved so far, seen from inside root
	rest := split(path)
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		if part == ".." {
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, part)
		info, err := os.Lstat(filepath.Join(root, next))
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%s: more than %d symbolic links", path, maxLinks)
		}
		target, err := os.Readlink(filepath.Join(root, next))
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) {
			done = "/"
		}
		rest = append(split(target), rest...)
	}
	return filepath.Join(root, done), nil
}

func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// makeTarget resolves path in root and makes what is missing: a folder, or an
// empty file for a file to be bound on.
func makeTarget(root, path string, folder bool) (string, error) {
	target, err := resolve(root, path)
	if err != nil {
		return "", err
	}
	if folder {
		return target, os.MkdirAll(target, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return "", err
	}
	file, err := os.OpenFile(target, os.O_CREATE, 0o644)
	if err != nil {
		return "", err
	}
	return target, file.Close()
}
