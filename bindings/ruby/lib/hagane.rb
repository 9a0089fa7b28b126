# frozen_string_literal: true

require 'digest'
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
      unless shape.is_a?(Array) && shape.all?(Integer) && shape.length <= 16
        raise ArgumentError, "expected a list of 16 whole numbers at most as a shape, got #{shape.inspect}"
      end

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

  # A model of the library, closed when it is asked to and no run goes on.
  class Handle
    attr_reader :model

    def initialize(model, close)
      @model = model
      @close = close
      @runs = 0
      @closed = false
      @lock = Mutex.new
    end

    # Calls the block, unless the model is closed.
    def use
      @lock.synchronize do
        raise Error.new(1, 'the model is closed') if @closed

        @runs += 1
      end
      begin
        yield @model
      ensure
        @lock.synchronize { finish(-1) }
      end
    end

    def close
      @lock.synchronize do
        @closed = true
        finish(0)
      end
    end

    # (Of a model that nobody holds any more: no run goes on, and no lock is taken.)
    def collect
      @closed = true
      finish(0)
    end

    # (A method of its own, which does not hold the model.)
    def self.finalizer(handle)
      proc { handle.collect }
    end

    private

    def finish(change)
      @runs += change
      return if !@closed || @runs.positive? || @model.nil?

      @close.call(@model)
      @model = nil
    end
  end
  private_constant :Handle

  # A build that is open; threads may run it at once. Closes with the garbage collector at the latest.
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
      @library = load_library(folder.to_s)
      @functions = {}
      place = Fiddle::Pointer.malloc(Fiddle::SIZEOF_VOIDP, Fiddle::RUBY_FREE)
      check(call('hagane_open', :int, folder.to_s, nil, place))
      @handle = Handle.new(place.ptr, function('hagane_close', :void))
      ObjectSpace.define_finalizer(self, Handle.finalizer(@handle))
      @inputs = describe('hagane_inputs', 'hagane_input')
      @outputs = describe('hagane_outputs', 'hagane_output')
    end

    # Returns a Tensor for each output by name.
    def run(given, names = @outputs.map(&:name))
      ins = given.map do |name, tensor|
        raise ArgumentError, "input '#{name}': expected a Hagane::Tensor, got #{tensor.class}" unless tensor.is_a?(Tensor)

        pack(name, tensor)
      end
      outs = names.map { |name| pack(name, nil) }
      held = [ins, outs].flatten
      into = Fiddle::Pointer[outs.map(&:first).join]
      from = Fiddle::Pointer[ins.map(&:first).join]
      @handle.use do |model|
        check(call('hagane_run', :int, model, from, ins.length, into, outs.length))
        begin
          names.each_with_index.to_h { |name, i| [name, unpack(into[i * TENSOR_BYTES, TENSOR_BYTES])] }
        ensure
          call('hagane_release', :void, model, into, outs.length)
          held.clear
        end
      end
    end

    # Closes the model, once the runs of other threads have ended; none can be begun.
    def close
      @handle.close
    end

    private

    def load_library(folder)
      path = File.join(folder, 'manifest.json')
      name, sum = JSON.parse(File.read(path)).values_at('library', 'library_sha256')
      raise Error.new(3, "'#{path}' names no library") unless name.is_a?(String) && File.basename(name) == name

      library = File.expand_path(name, folder)
      raise Error.new(2, "'#{library}' is an archive: build the model with --shared") if name.end_with?('.a')
      # (The loader of a system maps files as they are: one that was cut off ends the process.)
      raise Error.new(3, "'#{library}' is damaged, or of another build") if Digest::SHA256.file(library).hexdigest != sum

      Fiddle.dlopen(library)
    rescue SystemCallError, Fiddle::DLError => e
      raise Error.new(2, "'#{path}' cannot be read: #{e.message}; expected a folder that hagane build wrote")
    rescue JSON::ParserError, TypeError, NoMethodError, EncodingError
      raise Error.new(3, "'#{path}' is damaged: build the model again")
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
      function(name, result).call(*arguments)
    end

    def function(name, result)
      @functions[name] ||= Fiddle::Function.new(@library[name], ARGUMENTS.fetch(name), RESULTS.fetch(result))
    end

    def check(code)
      raise Error.new(code, call('hagane_message', :text).to_s.force_encoding('UTF-8')) unless code.zero?
    end

    def describe(count, one)
      model = @handle.model
      Array.new(call(count, :size, model)) do |i|
        info = Fiddle::Pointer.malloc(INFO_BYTES, Fiddle::RUBY_FREE)
        check(call(one, :int, model, i, info))
        name, type, rank, *sizes = info[0, INFO_BYTES].unpack('Jl<l<q<32')
        text = Fiddle::Pointer.new(name).to_s.force_encoding('UTF-8')
        Argument.new(text, TYPES.keys.find { |key| TYPES[key].number == type }, sizes[0, rank], sizes[16, rank])
      end
    end

    # The bytes of a hagane_tensor, and what has to live as long as they are used.
    def pack(name, tensor)
      raise Error.new(1, "there is no input or output #{name.inspect}") if name.to_s.include?("\0")

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
             @outputs.find { |item| item.name.b == Fiddle::Pointer.new(name).to_s.b }.type
      Tensor.new(rest[0, rank], kind, Fiddle::Pointer.new(rest[16])[0, rest[17]])
    end
  end
end
