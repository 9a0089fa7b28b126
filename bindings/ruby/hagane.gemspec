Gem::Specification.new do |spec|
  spec.name = 'hagane'
  spec.version = '1.0.0'
  spec.summary = 'Runs models that `hagane build` compiled'
  spec.authors = ['The authors of hagane']
  spec.license = 'Nonstandard'
  spec.required_ruby_version = '>= 2.7'
  spec.files = ['lib/hagane.rb', 'examples/classify.rb']
end
