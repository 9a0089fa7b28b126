// Package hagane runs models that `hagane build` compiled.
//
// Programs are linked with the library of any build:
//
//	CGO_CFLAGS=-I$DIR CGO_LDFLAGS="-L$DIR -lnet" go build
package hagane

/*
#include <hagane.h>
#include <stdlib.h>
#include <string.h>
*/
import "C"

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unsafe"
)

// Error is a call that failed: its code, as hagane.h has them, and hagane's message.
type Error struct {
	Code    int
	Message string
}

func (e *Error) Error() string { return e.Message }

// Codes of errors.
const (
	InvalidArgument = int(C.HAGANE_INVALID_ARGUMENT)
	NotFound        = int(C.HAGANE_NOT_FOUND)
	Damaged         = int(C.HAGANE_DAMAGED)
	Shape           = int(C.HAGANE_SHAPE)
	Type            = int(C.HAGANE_TYPE)
	CPU             = int(C.HAGANE_CPU)
	Memory          = int(C.HAGANE_MEMORY)
	Version         = int(C.HAGANE_VERSION)
	Cancelled       = int(C.HAGANE_CANCELLED)
	Internal        = int(C.HAGANE_INTERNAL)
)

// Float16 and BFloat16 are the bits of 16-bit floats.
type (
	Float16  uint16
	BFloat16 uint16
)

// Element is a type of elements that tensors have.
type Element interface {
	bool | Float16 | BFloat16 | float32 | float64 | int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64
}

func typeOf[T Element]() C.int32_t {
	var zero T
	switch any(zero).(type) {
	case float32:
		return 1
	case uint8:
		return 2
	case int8:
		return 3
	case uint16:
		return 4
	case int16:
		return 5
	case int32:
		return 6
	case int64:
		return 7
	case float64:
		return 11
	case uint32:
		return 12
	case bool:
		return 9
	case Float16:
		return 10
	case BFloat16:
		return 16
	default:
		return 13
	}
}

// Info describes an input or output, and the sizes that the model was built for.
type Info struct {
	Name        string
	Type        int
	Least, Most []int64
}

// Tensor is an input or a result, in row-major order.
type Tensor struct {
	Name  string
	Shape []int64
	kind  C.int32_t
	data  []byte
}

// NewTensor makes an input of elements, which are copied.
func NewTensor[T Element](name string, shape []int64, elements []T) Tensor {
	t := Tensor{Name: name, Shape: shape, kind: typeOf[T]()}
	if len(elements) > 0 {
		size := len(elements) * int(unsafe.Sizeof(elements[0]))
		t.data = append(t.data, unsafe.Slice((*byte)(unsafe.Pointer(&elements[0])), size)...)
	}
	return t
}

// Values returns the elements of a tensor, if they are of this type.
func Values[T Element](t Tensor) ([]T, error) {
	if t.kind != typeOf[T]() {
		var zero T
		return nil, &Error{Type, fmt.Sprintf("'%s' has elements of another type than %T", t.Name, zero)}
	}
	var zero T
	found := make([]T, len(t.data)/int(unsafe.Sizeof(zero)))
	if len(found) > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&found[0])), len(t.data)), t.data)
	}
	return found, nil
}

// Model is a build that is open; any number of goroutines may run it.
type Model struct {
	handle *C.hagane_model
	lock   sync.RWMutex // runs read, Close writes
}

// call runs a function of hagane on one thread, so that its message is that thread's.
func call(f func() C.int32_t) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if code := f(); code != 0 {
		return &Error{int(code), C.GoString(C.hagane_message())}
	}
	return nil
}

// Open opens a folder that `hagane build` wrote.
func Open(folder string) (*Model, error) {
	if strings.IndexByte(folder, 0) >= 0 {
		return nil, &Error{NotFound, fmt.Sprintf("%q: a path has no zero byte", folder)}
	}
	path := C.CString(folder)
	defer C.free(unsafe.Pointer(path))
	m := &Model{}
	if err := call(func() C.int32_t { return C.hagane_open(path, nil, &m.handle) }); err != nil {
		return nil, err
	}
	runtime.SetFinalizer(m, (*Model).Close)
	return m, nil
}

// Close closes the model once its runs have ended; to close it again does nothing.
func (m *Model) Close() {
	m.lock.Lock()
	defer m.lock.Unlock()
	C.hagane_close(m.handle)
	m.handle = nil
	runtime.SetFinalizer(m, nil)
}

func describe(info *C.hagane_info) Info {
	found := Info{Name: C.GoString(info.name), Type: int(info._type)}
	for i := 0; i < int(info.rank); i++ {
		found.Least = append(found.Least, int64(info.least[i]))
		found.Most = append(found.Most, int64(info.most[i]))
	}
	return found
}

// Inputs describes the inputs; a model that is closed has none.
func (m *Model) Inputs() []Info {
	m.lock.RLock()
	defer m.lock.RUnlock()
	var found []Info
	for i := C.size_t(0); i < C.hagane_inputs(m.handle); i++ {
		var info C.hagane_info
		C.hagane_input(m.handle, i, &info)
		found = append(found, describe(&info))
	}
	return found
}

// Outputs describes the outputs; a model that is closed has none.
func (m *Model) Outputs() []Info {
	m.lock.RLock()
	defer m.lock.RUnlock()
	return m.outputs()
}

func (m *Model) outputs() []Info {
	var found []Info
	for i := C.size_t(0); i < C.hagane_outputs(m.handle); i++ {
		var info C.hagane_info
		C.hagane_output(m.handle, i, &info)
		found = append(found, describe(&info))
	}
	return found
}

// Run runs the model; results come in the order of its outputs.
func (m *Model) Run(inputs ...Tensor) ([]Tensor, error) {
	m.lock.RLock()
	defer m.lock.RUnlock()
	if m.handle == nil {
		return nil, &Error{InvalidArgument, "the model is closed"}
	}
	// C may keep no pointers to Go's memory: tensors are copied.
	var kept []unsafe.Pointer
	defer func() {
		for _, p := range kept {
			C.free(p)
		}
	}()
	list := func(n int) []C.hagane_tensor {
		p := C.calloc(C.size_t(n+1), C.sizeof_hagane_tensor)
		kept = append(kept, p)
		return unsafe.Slice((*C.hagane_tensor)(p), n+1)
	}
	name := func(text string) *C.char {
		p := C.CString(text)
		kept = append(kept, unsafe.Pointer(p))
		return p
	}
	given := list(len(inputs))
	for i, t := range inputs {
		if len(t.Shape) > C.HAGANE_AXES {
			return nil, &Error{Shape, fmt.Sprintf("input '%s' has more than 16 axes", t.Name)}
		}
		if strings.IndexByte(t.Name, 0) >= 0 {
			return nil, &Error{InvalidArgument, fmt.Sprintf("there is no input %q", t.Name)}
		}
		given[i].name, given[i]._type, given[i].rank = name(t.Name), t.kind, C.int32_t(len(t.Shape))
		for axis, size := range t.Shape {
			given[i].shape[axis] = C.int64_t(size)
		}
		given[i].data, given[i].bytes = C.CBytes(t.data), C.size_t(len(t.data))
		kept = append(kept, given[i].data)
	}
	infos := m.outputs()
	wanted := list(len(infos))
	for i, info := range infos {
		wanted[i].name = name(info.Name)
	}
	in, out := C.size_t(len(inputs)), C.size_t(len(infos))
	if err := call(func() C.int32_t { return C.hagane_run(m.handle, &given[0], in, &wanted[0], out) }); err != nil {
		return nil, err
	}
	results := make([]Tensor, len(infos))
	for i := range results {
		t := &wanted[i]
		shape := make([]int64, t.rank)
		for axis := range shape {
			shape[axis] = int64(t.shape[axis])
		}
		data := make([]byte, int(t.bytes)) // (C.GoBytes takes 2 GiB at most.)
		copy(data, unsafe.Slice((*byte)(t.data), int(t.bytes)))
		results[i] = Tensor{infos[i].Name, shape, t._type, data}
	}
	C.hagane_release(m.handle, &wanted[0], out)
	return results, nil
}
