# frozen_string_literal: true

require 'fiddle'
require 'json'

# Runs models that `hagane build` compiled.
#
#   model = Hagane::Model.new('net.hagane')
#   scores = model.run('x' => Hagane::Tensor.new([1, 3], :float32, [0.5, 1.0, 2.0]))['y'].to_a
module Hagane
  # A call that failed: its code, as hagane.h has them, and hagane's message.
  class Error < StandardError
    attr_reader :code

    def initialize(code, message)
      super(message)
      @code = code
    end
  end

  # ONNX's number, bytes and the directive of Array#pack of an element type.
  Type = Struct.new(:number, :bytes, :directive)
  TYPES = {
    float32: Type.new(1, 4, 'e'), uint8: Type.new(2, 1, 'C'), int8: Type.new(3, 1, 'c'),
    uint16: Type.new(4, 2, 'S<'), int16: Type.new(5, 2, 's<'), int32: Type.new(6, 4, 'l<'),
    int64: Type.new(7, 8, 'q<'), bool: Type.new(9, 1, 'C'), float16: Type.new(10, 2, 'S<'),
    float64: Type.new(11, 8, 'E'), uint32: Type.new(12, 4, 'L<'), uint64: Type.new(13, 8, 'Q<'),
    bfloat16: Type.new(16, 2, 'S<')
  }.freeze

  # Numbers of one type with a shape; bool as 0 and 1, 16-bit floats as their bits.
  class Tensor
    attr_reader :shape, :type, :bytes

    # values: an array, or the bytes as a string.
    def initialize(shape, type, values)
      kind = TYPES.fetch(type) { raise ArgumentError, "expected a type of #{TYPES.keys.join(', ')}, got #{type}" }
      @shape = shape.dup.freeze
      @type = type
      @bytes = values.is_a?(String) ? values.b : values.flatten.pack("#{kind.directive}*")
      want = shape.inject(1, :*) * kind.bytes
      return if @bytes.bytesize == want

      raise ArgumentError, "expected #{want} bytes for #{shape.inspect} of #{type}, got #{@bytes.bytesize}"
    end

    # The elements, one after the other.
    def to_a
      @bytes.unpack("#{TYPES[@type].directive}*")
    end
  end

  # An input or output: its element type, and the least and most of each size.
  Argument = Struct.new(:name, :type, :least, :most)

  # A build that is open; threads may run it at once.
  class Model
    # struct hagane_tensor: name, type, rank, shape[16], data, bytes
    TENSOR = "Jl<l<q<16JJ"
    TENSOR_BYTES = 160
    INFO_BYTES = 272
    private_constant :TENSOR, :TENSOR_BYTES, :INFO_BYTES

    attr_reader :inputs, :outputs

    def self.open(folder)
      model = new(folder)
      return model unless block_given?

      begin
        yield model
      ensure
        model.close
      end
    end

    def initialize(folder)
      @library = Fiddle.dlopen(File.expand_path(library_of(folder)))
      @functions = {}
      place = Fiddle::Pointer.malloc(Fiddle::SIZEOF_VOIDP, Fiddle::RUBY_FREE)
      check(call('hagane_open', :int, folder.to_s, nil, place))
      @model = place.ptr
      @inputs = describe('hagane_inputs', 'hagane_input')
      @outputs = describe('hagane_outputs', 'hagane_output')
    end

    # Returns a Tensor for each output by name.
    def run(given, names = @outputs.map(&:name))
      raise Error.new(1, 'the model is closed') if @model.nil?

      ins = given.map { |name, tensor| pack(name, tensor) }
      outs = names.map { |name| pack(name, nil) }
      held = [ins, outs].flatten
      into = Fiddle::Pointer[outs.map(&:first).join]
      from = Fiddle::Pointer[ins.map(&:first).join]
      check(call('hagane_run', :int, @model, from, ins.length, into, outs.length))
      begin
        names.each_with_index.to_h { |name, i| [name, unpack(into[i * TENSOR_BYTES, TENSOR_BYTES])] }
      ensure
        call('hagane_release', :void, @model, into, outs.length)
        held.clear
      end
    end

    def close
      call('hagane_close', :void, @model) unless @model.nil?
      @model = nil
    end

    private

    def library_of(folder)
      path = File.join(folder, 'manifest.json')
      name = JSON.parse(File.read(path))['library']
      raise Error.new(3, "'#{path}' names no library") unless name.is_a?(String)

      File.join(folder, name)
    rescue SystemCallError, JSON::ParserError => e
      raise Error.new(2, "'#{path}' cannot be read: #{e.message}; expected a folder that hagane build wrote")
    end

    ARGUMENTS = {
      'hagane_open' => [Fiddle::TYPE_VOIDP] * 3, 'hagane_close' => [Fiddle::TYPE_VOIDP],
      'hagane_inputs' => [Fiddle::TYPE_VOIDP], 'hagane_outputs' => [Fiddle::TYPE_VOIDP],
      'hagane_input' => [Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T, Fiddle::TYPE_VOIDP],
      'hagane_output' => [Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T, Fiddle::TYPE_VOIDP],
      'hagane_run' => [Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T,
                       Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T],
      'hagane_release' => [Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T],
      'hagane_message' => []
    }.freeze
    RESULTS = { int: Fiddle::TYPE_INT, void: Fiddle::TYPE_VOID, size: Fiddle::TYPE_SIZE_T,
                text: Fiddle::TYPE_VOIDP }.freeze
    private_constant :ARGUMENTS, :RESULTS

    def call(name, result, *arguments)
      @functions[name] ||= Fiddle::Function.new(@library[name], ARGUMENTS.fetch(name), RESULTS.fetch(result))
      @functions[name].call(*arguments)
    end

    def check(code)
      raise Error.new(code, call('hagane_message', :text).to_s.force_encoding('UTF-8')) unless code.zero?
    end

    def describe(count, one)
      Array.new(call(count, :size, @model)) do |i|
        info = Fiddle::Pointer.malloc(INFO_BYTES, Fiddle::RUBY_FREE)
        check(call(one, :int, @model, i, info))
        name, type, rank, *sizes = info[0, INFO_BYTES].unpack('Jl<l<q<32')
        text = Fiddle::Pointer.new(name).to_s.force_encoding('UTF-8')
        Argument.new(text, TYPES.keys.find { |key| TYPES[key].number == type }, sizes[0, rank], sizes[16, rank])
      end
    end

    # The bytes of a hagane_tensor, and what has to live as long as they are used.
    def pack(name, tensor)
      text = Fiddle::Pointer["#{name}\0"]
      return [[text.to_i, 0, 0, *[0] * 16, 0, 0].pack(TENSOR), text] if tensor.nil?

      data = Fiddle::Pointer[tensor.bytes]
      shape = tensor.shape + [0] * (16 - tensor.shape.length)
      head = [text.to_i, TYPES[tensor.type].number, tensor.shape.length, *shape]
      [[*head, data.to_i, tensor.bytes.bytesize].pack(TENSOR), text, data, tensor]
    end

    # An output as a Tensor of its own; of its type the model tells.
    def unpack(bytes)
      name, type, rank, *rest = bytes.unpack(TENSOR)
      kind = TYPES.keys.find { |key| TYPES[key].number == type } ||
             @outputs.find { |item| item.name == Fiddle::Pointer.new(name).to_s }.type
      Tensor.new(rest[0, rank], kind, Fiddle::Pointer.new(rest[16])[0, rest[17]])
    end
  end
end
