package podruntime

import (
	"context"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Images implements the CRI's ImageManagerService: every image is there already,
// and runs as root unless the pod says otherwise. Which program it stands for is
// decided when a container is created (package images).
type Images struct {
	Dir string // where the kubelet may measure a file system
}

// ListImages lists none, so that none is ever collected as garbage.
func (Images) ListImages(context.Context, *cri.ImageFilter) ([]*cri.Image, error) { return nil, nil }

// ImageStatus says that the image is present.
func (Images) ImageStatus(_ context.Context, image *cri.ImageSpec, _ bool) (*cri.ImageStatusResponse, error) {
	return &cri.ImageStatusResponse{Image: &cri.Image{
		Id: image.Image, RepoTags: []string{image.Image}, Size: 1, Uid: &cri.Int64Value{Value: 0}, Spec: image,
	}}, nil
}

// PullImage has nothing to do (imagePullPolicy: Always).
func (Images) PullImage(_ context.Context, image *cri.ImageSpec, _ *cri.AuthConfig, _ *cri.PodSandboxConfig) (string, error) {
	return image.Image, nil
}

// RemoveImage has nothing to remove.
func (Images) RemoveImage(context.Context, *cri.ImageSpec) error { return nil }

// ImageFsInfo names the folder; an empty answer would be logged as an error every minute.
func (i Images) ImageFsInfo(context.Context) (*cri.ImageFsInfoResponse, error) {
	usage := []*cri.FilesystemUsage{{
		Timestamp: time.Now().UnixNano(), FsId: &cri.FilesystemIdentifier{Mountpoint: i.Dir},
		UsedBytes: &cri.UInt64Value{Value: 1}, InodesUsed: &cri.UInt64Value{Value: 1},
	}}
	return &cri.ImageFsInfoResponse{ImageFilesystems: usage, ContainerFilesystems: usage}, nil
}

// Close has nothing to close.
func (Images) Close(context.Context) error { return nil }
