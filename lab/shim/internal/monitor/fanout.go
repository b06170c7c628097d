package monitor

import (
	"bytes"
	"net"
	"sync"

	"sallyport.test/lab/shim/control"
)

// backlog is how many chunks may wait for one client.
const backlog = 256

// fanout copies output to all attached clients. A client that does not read loses
// its connection: it must not hold up the container or the log.
type fanout struct {
	mu      sync.Mutex
	closed  bool
	clients map[net.Conn]chan frame
	writers sync.WaitGroup
}

type frame struct {
	kind control.Kind
	data []byte
}

// add starts sending to conn. After close it only ends the conversation.
func (f *fanout) add(conn net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		finish(conn, nil)
		conn.Close()
		return
	}
	if f.clients == nil {
		f.clients = map[net.Conn]chan frame{}
	}
	queue := make(chan frame, backlog)
	f.clients[conn] = queue
	f.writers.Go(func() {
		for next := range queue {
			if control.Write(conn, next.kind, next.data) != nil {
				break
			}
		}
		conn.Close()
	})
}

// remove stops sending to conn; twice is fine.
func (f *fanout) remove(conn net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(conn)
}

func (f *fanout) drop(conn net.Conn) {
	if queue, ok := f.clients[conn]; ok {
		close(queue)
		delete(f.clients, conn)
	}
}

// send queues a copy of data for every client.
func (f *fanout) send(kind control.Kind, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.clients) == 0 {
		return
	}
	next := frame{kind, bytes.Clone(data)}
	for conn, queue := range f.clients {
		select {
		case queue <- next:
		default:
			f.drop(conn)
			conn.Close()
		}
	}
}

// close sends what is queued and the end to every client and waits for it.
func (f *fanout) close() {
	f.mu.Lock()
	f.closed = true
	for conn, queue := range f.clients {
		select {
		case queue <- frame{kind: control.KindDone}:
		default:
			conn.Close()
		}
		f.drop(conn)
	}
	f.mu.Unlock()
	f.writers.Wait()
}
