# frozen_string_literal: true

# What the Ruby binding promises, beside its example.
require 'hagane'

def expect(condition, what)
  raise what unless condition
end

def fails(kind, text)
  yield
  raise "expected an error with '#{text}'"
rescue kind => e
  raise e unless e.message.include?(text)

  e
end

model = Hagane::Model.new(ARGV[0])
expect(model.inputs.map(&:to_a) == [['x', :float32, [1, 3, 6, 8], [1, 3, 6, 8]]], 'inputs')
expect(model.outputs.map(&:name) == ['y'], 'outputs')
x = Hagane::Tensor.new([1, 3, 6, 8], :float32, Array.new(144) { |i| i / 144.0 })
y = model.run('x' => x)['y']
expect(y.shape == [1, 10] && y.type == :float32 && y.to_a.length == 10, 'the output')
found = Array.new(4) { Thread.new { Array.new(20) { model.run({ 'x' => x }, ['y'])['y'].bytes } } }
expect(found.flat_map(&:value).uniq == [y.bytes], 'threads')
wrong = Hagane::Tensor.new([1, 3, 6, 9], :float32, [0.0] * 162)
error = fails(Hagane::Error, "input 'x': axis 3 is 9, expected 8") { model.run('x' => wrong) }
expect(error.code == 4, 'the code of a shape')
fails(Hagane::Error, "there is no input 'z'; the model has: x") { model.run('z' => x) }
fails(ArgumentError, 'expected 8 bytes for [2] of float32, got 4') { Hagane::Tensor.new([2], :float32, [1.0]) }
fails(ArgumentError, 'expected a type of float32') { Hagane::Tensor.new([1], :float, [1.0]) }
GC.start
model.close
model.close
fails(Hagane::Error, 'the model is closed') { model.run('x' => x) }
puts 'fine'
