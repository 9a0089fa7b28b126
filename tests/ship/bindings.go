// What the binding for Go promises, beside its example: bindings BUILD GUESTS DAMAGED…
package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"sync"

	"hagane.dev/hagane"
)

func expect(condition bool, what any) {
	if !condition {
		panic(what)
	}
}

func must[T any](value T, err error) T {
	expect(err == nil, err)
	return value
}

func fails(code int, text string, err error) {
	var found *hagane.Error
	expect(errors.As(err, &found) && found.Code == code && strings.Contains(found.Message, text),
		fmt.Sprintf("expected %d, '%s', got %v", code, text, err))
}

func rows(shape ...int64) hagane.Tensor {
	return hagane.NewTensor("x", shape, make([]float32, 15))
}

// guests returns a feed with some inputs in the place of others of the same name.
func guests(changed ...hagane.Tensor) []hagane.Tensor {
	nan := float32(math.NaN())
	feed := []hagane.Tensor{
		hagane.NewTensor("x", []int64{2, 3}, []float32{1, 2, 3, nan, 5, 6}),
		hagane.NewTensor("ids", []int64{3}, []int64{0, 9, 4}),
		hagane.NewTensor("flag", []int64{2}, []bool{true, false}),
		hagane.NewTensor("half", []int64{2}, []hagane.Float16{0x3c00, 0xc000}),
		hagane.NewTensor("größe😀", []int64{1}, []uint64{math.MaxUint64}),
	}
	for _, each := range changed {
		for i := range feed {
			if feed[i].Name == each.Name {
				feed[i] = each
			}
		}
	}
	return feed
}

func refused(model *hagane.Model, code int, text string, feed ...hagane.Tensor) {
	_, err := model.Run(feed...)
	fails(code, text, err)
}

func main() {
	model := must(hagane.Open(os.Args[2]))
	first := model.Inputs()[0]
	expect(first.Name == "x" && first.Least[0] == 0 && first.Most[0] == 4, "inputs")
	found := must(model.Run(guests()...))
	y := must(hagane.Values[float32](found[0]))
	expect(len(y) == 4 && y[0] == y[0] && y[2] != y[2], "y")
	expect(reflect.DeepEqual(must(hagane.Values[bool](found[2])), []bool{false, true}), "truth values")
	expect(reflect.DeepEqual(must(hagane.Values[hagane.Float16](found[3])), []hagane.Float16{0xbc00, 0x4000}), "halves")
	expect(must(hagane.Values[uint64](found[4]))[0] == math.MaxUint64 && found[4].Name == "länge😀", "names")
	none := must(model.Run(guests(hagane.NewTensor("x", []int64{0, 3}, []float32{}))...))
	expect(reflect.DeepEqual(none[0].Shape, []int64{0, 2}), "no rows")
	_, err := hagane.Values[int32](found[0])
	fails(hagane.Type, "another type than int32", err)

	refused(model, hagane.Shape, "input 'x': axis 0 is 5, expected 0 to 4", guests(rows(5, 3))...)
	refused(model, hagane.Shape, "input 'x': axis 1 is 4, expected 3", guests(rows(2, 4))...)
	refused(model, hagane.Shape, "input 'x': axis 0 is -1", guests(rows(-1, 3))...)
	refused(model, hagane.Shape, "input 'x': expected 2 axes, got 1", guests(rows(3))...)
	refused(model, hagane.Shape, "more than 16 axes", guests(rows(make([]int64, 17)...))...)
	refused(model, hagane.Memory, "expected memory of 48 bytes, got 4", guests(hagane.NewTensor("x", []int64{4, 3}, []float32{1}))...)
	refused(model, hagane.Type, "input 'x': expected float32, got float64", guests(hagane.NewTensor("x", []int64{1, 3}, make([]float64, 3)))...)
	refused(model, hagane.InvalidArgument, "there is no input 'z'; the model has: x, ids", append(guests(), hagane.NewTensor("z", []int64{1}, []int8{1}))...)
	refused(model, hagane.InvalidArgument, `there is no input "x\x00"`, append(guests(), hagane.NewTensor("x\x00", []int64{1}, []int8{1}))...)
	refused(model, hagane.InvalidArgument, "input 'x' is given twice", append(guests(), rows(1, 3))...)
	refused(model, hagane.InvalidArgument, "input 'größe😀' is missing", guests()[:4]...)
	refused(model, hagane.InvalidArgument, "'look up'", guests(hagane.NewTensor("ids", []int64{1}, []int64{10}))...)
	for _, folder := range os.Args[3:] {
		_, err := hagane.Open(folder)
		var told *hagane.Error
		expect(errors.As(err, &told) && strings.Contains(told.Message, folder), err)
	}

	shared := must(hagane.Open(os.Args[1]))
	x := hagane.NewTensor("x", []int64{1, 3, 6, 8}, make([]float32, 144))
	expected := must(hagane.Values[float32](must(shared.Run(x))[0]))
	var begun, ended sync.WaitGroup
	for i := 0; i < 8; i++ {
		begun.Add(1)
		ended.Add(1)
		go func() {
			defer ended.Done()
			for k := 0; k < 50; k++ {
				results, err := shared.Run(x)
				if k == 0 {
					begun.Done()
				}
				if err != nil {
					fails(hagane.InvalidArgument, "the model is closed", err)
					return
				}
				expect(reflect.DeepEqual(must(hagane.Values[float32](results[0])), expected), "goroutines")
			}
		}()
	}
	begun.Wait()
	shared.Close() // waits for runs that go on
	shared.Close()
	ended.Wait()
	refused(shared, hagane.InvalidArgument, "the model is closed", x)
	expect(len(shared.Inputs()) == 0, "a closed model has no inputs")
	expect(bytes.Equal([]byte(model.Inputs()[4].Name), []byte("größe😀")), "UTF-8")
	fmt.Println("fine")
}
