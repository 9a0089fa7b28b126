// Classify names the class of a picture: classify BUILD PICTURE.ppm
//
// The picture is a binary PPM of the size that the model takes; pixels become numbers from 0 to 1.
package main

import (
	"bytes"
	"fmt"
	"os"

	"hagane.dev/hagane"
)

func readPicture(path string, height, width int64) ([]float32, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	head := []byte(fmt.Sprintf("P6\n%d %d\n255\n", width, height))
	if !bytes.HasPrefix(content, head) {
		return nil, fmt.Errorf("expected a PPM of %d x %d", width, height)
	}
	pixels, count := content[len(head):], int(height*width)
	planes := make([]float32, 3*count)
	for i := range planes {
		planes[i] = float32(pixels[i%count*3+i/count]) / 255
	}
	return planes, nil
}

func classify(build, picture string) (int, error) {
	model, err := hagane.Open(build)
	if err != nil {
		return 0, err
	}
	defer model.Close()
	input := model.Inputs()[0]
	height, width := input.Least[2], input.Least[3]
	pixels, err := readPicture(picture, height, width)
	if err != nil {
		return 0, err
	}
	results, err := model.Run(hagane.NewTensor(input.Name, []int64{1, 3, height, width}, pixels))
	if err != nil {
		return 0, err
	}
	scores, err := hagane.Values[float32](results[0])
	best := 0
	for i, score := range scores {
		if score > scores[best] {
			best = i
		}
	}
	return best, err
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: classify BUILD PICTURE.ppm")
		os.Exit(2)
	}
	class, err := classify(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(class)
}
