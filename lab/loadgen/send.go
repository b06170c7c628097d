package main

import (
	"fmt"
	"net/netip"
	"runtime"
	"runtime/debug"
	"syscall"
	"unsafe"
)

// cost is what equal operations took from the processor, batch by batch.
type cost struct {
	Count  int `json:"count"`
	Failed int `json:"failed"`
	// CPU time of one operation in ns, as the mean of each batch.
	Batches []float64 `json:"batches"`
}

const (
	payloadBytes  = 64
	warmUpPackets = 500
	sendBuffer    = 4 << 20
	// Other work of the machine disturbs some batches; their median and their minimum know little of it.
	batchCount = 20
	// CLOCK_THREAD_CPUTIME_ID of clock_gettime(2).
	threadCPUClock = 3
)

// timed runs one operation about count times on one thread and notes its CPU time.
// An operation returns whether it succeeded.
func timed(count int, operation func(index int) bool) cost {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	debug.SetGCPercent(-1)
	size := (count + batchCount - 1) / batchCount
	spent := cost{Batches: make([]float64, 0, batchCount)}
	for range batchCount {
		start := threadCPU()
		for range size {
			if !operation(spent.Count) {
				spent.Failed++
			}
			spent.Count++
		}
		spent.Batches = append(spent.Batches, float64(threadCPU()-start)/float64(size))
	}
	return spent
}

func threadCPU() int64 {
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadCPUClock, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

// established sends packets of one UDP flow that is known to every kernel on the way.
func established(hostText string, count int) (cost, error) {
	host, err := parseHost(hostText)
	if err != nil {
		return cost{}, err
	}
	fd, err := syscall.Socket(familyOf(host), syscall.SOCK_DGRAM, 0)
	if err != nil {
		return cost{}, err
	}
	defer syscall.Close(fd)
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_SNDBUF, sendBuffer); err != nil {
		return cost{}, err
	}
	if err := syscall.Connect(fd, socketAddress(host, sinkPort)); err != nil {
		return cost{}, err
	}
	var payload [payloadBytes]byte
	send := func(int) bool {
		// Raw system calls: the scheduler of Go need not know, because sending here never waits.
		_, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&payload[0])), payloadBytes)
		return errno == 0
	}
	timed(warmUpPackets, send)
	return timed(count, send), nil
}

// flows sends packets of which each is the first of its UDP flow.
func flows(sourceText, hostText string, count, first int) (cost, error) {
	source, err := parseHost(sourceText)
	if err != nil {
		return cost{}, err
	}
	host, err := parseHost(hostText)
	if err != nil {
		return cost{}, err
	}
	if source.Is4() != host.Is4() {
		return cost{}, fmt.Errorf("%v and %v are of different families", source, host)
	}
	if first < 1 || first+count+batchCount > 1<<16 {
		return cost{}, fmt.Errorf("%d flows from port %d on need ports up to 65535", count, first)
	}
	fd, err := syscall.Socket(familyOf(host), syscall.SOCK_RAW, syscall.IPPROTO_RAW)
	if err != nil {
		return cost{}, err
	}
	defer syscall.Close(fd)
	packet := newPacket(source, host, sinkPort)
	address, size := rawAddress(host)
	return timed(count, func(index int) bool {
		packet.setSourcePort(uint16(first + index))
		// Not connected: packets of a connected socket have one hash in common, and all flows would be one in a tunnel.
		_, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(fd),
			uintptr(unsafe.Pointer(&packet.bytes[0])), uintptr(len(packet.bytes)), 0, uintptr(address), size)
		return errno == 0
	}), nil
}

// connections opens TCP connections one after the other and closes each with a reset.
func connections(hostText string, count int) (cost, error) {
	host, err := parseHost(hostText)
	if err != nil {
		return cost{}, err
	}
	family, address := familyOf(host), socketAddress(host, tcpPort)
	return timed(count, func(int) bool {
		fd, err := syscall.Socket(family, syscall.SOCK_STREAM, 0)
		if err != nil {
			return false
		}
		defer syscall.Close(fd)
		// No lingering: close sends a reset, and no port waits for later segments.
		if err := syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1}); err != nil {
			return false
		}
		return syscall.Connect(fd, address) == nil
	}), nil
}

func familyOf(host netip.Addr) int {
	if host.Is4() {
		return syscall.AF_INET
	}
	return syscall.AF_INET6
}

// rawAddress is the address of a host as system calls take it, with its size.
func rawAddress(host netip.Addr) (unsafe.Pointer, uintptr) {
	if host.Is4() {
		address := &syscall.RawSockaddrInet4{Family: syscall.AF_INET, Addr: host.As4()}
		return unsafe.Pointer(address), unsafe.Sizeof(*address)
	}
	address := &syscall.RawSockaddrInet6{Family: syscall.AF_INET6, Addr: host.As16()}
	return unsafe.Pointer(address), unsafe.Sizeof(*address)
}

func socketAddress(host netip.Addr, port int) syscall.Sockaddr {
	if host.Is4() {
		return &syscall.SockaddrInet4{Addr: host.As4(), Port: port}
	}
	return &syscall.SockaddrInet6{Addr: host.As16(), Port: port}
}
