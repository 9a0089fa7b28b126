# frozen_string_literal: true

# Classifies a picture: ruby -I lib examples/classify.rb BUILD PICTURE.ppm
#
# The picture is a binary PPM of the size that the model takes; pixels become numbers from 0 to 1.
require 'hagane'

def read_picture(path, height, width)
  bytes = File.binread(path)
  head = "P6\n#{width} #{height}\n255\n".b
  raise "expected a PPM of #{width} x #{height}" unless bytes.start_with?(head)

  pixels = bytes[head.length..].bytes
  count = height * width
  Array.new(3 * count) { |i| pixels[i % count * 3 + i / count] / 255.0 }
end

build, picture = ARGV
begin
  Hagane::Model.open(build) do |model|
    input = model.inputs.first
    height, width = input.least[2, 2]
    x = Hagane::Tensor.new([1, 3, height, width], :float32, read_picture(picture, height, width))
    scores = model.run(input.name => x).values.first.to_a
    puts scores.index(scores.max)
  end
rescue StandardError => e
  warn e.message
  exit 1
end
