# Preload for a hot ruby: `ruby -r THIS -r THIS script`. Ruby opens the script first, then
# requires libraries, then parses, so the script must not be empty at the start (init.sh
# puts a newline there). The first `require` only prepares for the second one, which never
# reaches the real `require`, so that $LOADED_FEATURES can be left as it was.
def self.require(feature)
  singleton_class.send(:remove_method, :require)
  $LOADED_FEATURES.delete(feature)
  # Rebuilds ruby's index of the loaded features now instead of in the job's first require.
  require 'monitor'

  # What ruby reads only while it starts: such a job gets a fresh interpreter instead.
  starts = /\A(RUBY|GEM_|BUNDLE|LC_|LANG|LD_|GLIBC_|MALLOC_|HOME=)/n
  failed = lambda do |reason|
    STDERR.syswrite("hotcell: #{reason}\n")
    exit!(70)
  end
  take = lambda do |size|
    data = String.new(capacity: size)
    while data.bytesize < size
      begin
        data << STDIN.sysread(size - data.bytesize)
      rescue EOFError
        failed.call('the job frame ends early')
      end
    end
    data
  end
  field = lambda do |head = String.new|
    until head.end_with?("\n")
      head << take.call(1)
      failed.call('bad job frame') if head.bytesize > 12
    end
    failed.call('bad job frame') unless head.match?(/\A\d+\n\z/)
    take.call(head.to_i)
  end
  many = lambda do |&read|
    number = field.call
    failed.call('bad job frame') unless number.match?(/\A\d+\z/)
    Array.new(number.to_i) { read.call }
  end
  extra = lambda do |base|
    name = field.call
    content = field.call
    bad = name.empty? || name.start_with?('/') || name.split('/').include?('..')
    failed.call('bad path in the job frame') if bad
    path = File.join(base, name.force_encoding(Encoding::UTF_8))
    folders = [File.dirname(path)]
    folders.unshift(File.dirname(folders.first)) until File.directory?(folders.first)
    folders.each { |folder| Dir.mkdir(folder) unless File.directory?(folder) }
    File.binwrite(path, content, perm: 0o644)
  end

  script = ObjectSpace.each_object(File).find { |file| !file.closed? && file.path == $0 }
  # Buffered output would be lost when the job is killed.
  STDOUT.sync = true
  # In a cell with slots this ruby is never given a job: it forks others that are.
  slots = ENV.delete('HOTCELL_NEST')
  forks = eval(File.read(feature.sub(/\.rb\z/, '-forks.rb'))) if slots
  GC.start
  forks&.serve(slots, script)
  STDOUT.syswrite("\x06")

  begin
    first = STDIN.sysread(1)
  rescue EOFError
    exit!(0)
  end
  begin
    code = field.call(first)
    args = many.call { field.call.force_encoding(Encoding.default_external).freeze }
    env = many.call { field.call }
    # Ruby goes on to read the file that it has opened, whatever others have put in its place.
    failed.call('the code file is not the one that was opened') unless File.identical?($0, script)
    File.binwrite($0, code, perm: 0o644)
    many.call { extra.call(File.dirname(File.expand_path($0))) }
  rescue SystemCallError => error
    failed.call(error.message)
  end

  env.each do |entry|
    name, _, value = entry.partition('=')
    ENV[name] = value
  end
  # Ruby has looked for a #! line already and obeys the options it finds there.
  line = code[/\A#!.*/n]
  if env.any?(starts) || (line && !line.match?(/ruby\s*\z/n))
    exec([RbConfig.ruby, 'ruby'], $0, *args)
  end
  ARGV.concat(args)
  # Drops what ruby has buffered of the file: the parser now starts at its first byte.
  script.rewind
  true
end
