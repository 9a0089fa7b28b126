# frozen_string_literal: true

# What the Ruby binding promises, beside its example: bindings.rb BUILD GUESTS DAMAGED…
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

def tensor(*arguments)
  Hagane::Tensor.new(*arguments)
end

def rows(*shape)
  { 'x' => tensor(shape, :float32, [0.0] * shape.inject(1, :*)) }
end

feed = {
  'x' => tensor([2, 3], :float32, [1, 2, 3, Float::NAN, 5, 6]), 'ids' => tensor([3], :int64, [0, 9, 4]),
  'flag' => tensor([2], :bool, [1, 0]), 'half' => tensor([2], :float16, [0x3c00, 0xc000]),
  'größe😀' => tensor([1], :uint64, [2**64 - 1])
}
mixed = Hagane::Model.new(ARGV[1])
expect(mixed.inputs.map(&:name) == feed.keys, 'names')
found = mixed.run(feed)
expect(found['y'].to_a[0].finite? && found['y'].to_a[2].nan?, 'y')
expect(found['unflagged'].to_a == [0, 1] && found['halved'].to_a == [0xbc00, 0x4000], 'small types')
expect(found['länge😀'].to_a == [2**64 - 1], 'the largest number')
expect(mixed.run(feed.merge(rows(0, 3)))['y'].shape == [0, 2], 'no rows')
fails(Hagane::Error, "input 'x': axis 0 is 5, expected 0 to 4") { mixed.run(feed.merge(rows(5, 3))) }
fails(Hagane::Error, "input 'x': axis 1 is 4, expected 3") { mixed.run(feed.merge(rows(2, 4))) }
fails(Hagane::Error, "input 'x': axis 0 is -1") { mixed.run(feed.merge('x' => tensor([-1, -3], :float32, [0.0] * 3))) }
fails(Hagane::Error, "input 'x': expected 2 axes, got 1") { mixed.run(feed.merge(rows(3))) }
fails(ArgumentError, 'expected a list of 16 whole numbers') { rows(*[1] * 17) }
fails(ArgumentError, 'expected a list of 16 whole numbers') { tensor([1.5, 2], :float32, [0.0] * 3) }
fails(Hagane::Error, "input 'x': expected float32, got float64") { mixed.run(feed.merge('x' => tensor([1, 3], :float64, [0] * 3))) }
fails(Hagane::Error, "there is no input 'z'; the model has: x, ids") { mixed.run(feed.merge('z' => feed['x'])) }
fails(Hagane::Error, 'there is no input or output "x\\u0000"') { mixed.run(feed.merge("x\0" => feed['x'])) }
fails(Hagane::Error, "input 'half' is missing") { mixed.run(feed.reject { |name,| name == 'half' }) }
fails(Hagane::Error, "'look up'") { mixed.run(feed.merge('ids' => tensor([1], :int64, [10]))) }
fails(Hagane::Error, "there is no output 'q'") { mixed.run(feed, ['q']) }
fails(ArgumentError, "input 'x': expected a Hagane::Tensor, got Array") { mixed.run(feed.merge('x' => [1, 2])) }
ARGV[2..].each { |folder| fails(Hagane::Error, folder) { Hagane::Model.new(folder) } }

runs = Array.new(4) { Thread.new { Array.new(100) { model.run('x' => x) } rescue Hagane::Error } }
Thread.pass
model.close
model.close
runs.each(&:value)
fails(Hagane::Error, 'the model is closed') { model.run('x' => x) }
puts 'fine'
