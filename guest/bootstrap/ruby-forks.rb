# A ruby that has booted and forks runs: the slots of an outer cell, each of which makes one run after the other (see
# guest/lib/Nest/Slot.pm, which does the same for what is executed). `ruby.rb` evaluates this text, because a feature would
# have to be forgotten again everywhere, and what one object knows nobody else can see. Only `serve` is called, and it
# returns in the program of a run.
Object.new.instance_eval do
  machine = RUBY_PLATFORM.start_with?('aarch64') ? 1 : 0
  # On x86_64 and on arm64.
  @numbers = {
    close: [3, 57],
    dup3: [292, 24],
    rt_sigaction: [13, 134],
    setns: [308, 268],
    unshare: [272, 97],
    wait4: [61, 260],
  }.transform_values { |numbers| numbers[machine] }
  @newpid = 0x20000000
  @sigchld = 17
  @failed = 71
  # What the kernel was told to find somewhere must stay there.
  @kept = []

  def serve(words, script)
    # From version 3.3 on: what has threads can have no user namespace of its own.
    crowded = Dir.children('/proc/self/task').size > 1
    refuse('this ruby has a thread of its own, so copies of it can have no walls') if crowded
    plan_end, *pairs = words.split
    plan = IO.for_fd(plan_end.to_i)
    @plan = read_plan(plan.read)
    plan.close
    pairs = pairs.map do |pair|
      orders, answers = pair.split(',').map(&:to_i)
      [IO.for_fd(orders), IO.for_fd(answers, 'w')]
    end
    pairs.each do |slot|
      next if fork
      (pairs - [slot]).flatten.each(&:close)
      return serve_slot(*slot, script)
    end
    exit!(0)
  end

  def refuse(reason)
    STDERR.syswrite(reason)
    exit!(@failed)
  end

  def read_plan(text)
    words = text.split("\0", -1)
    # First the number of clone(2), which is not used here.
    words.shift
    plan = { flags: words.shift.to_i, workdir: words.shift }
    %i[first program keeper].each do |part|
      plan[part] = Array.new(words.shift.to_i) do
        kind, label, count = words.shift(3)
        [kind, label, words.shift(count.to_i).map { |word| to_word(word) }]
      end
    end
    plan
  end

  # A number as it is, the place of bytes as a number, text as text, and what differs from run to run as something to call.
  def to_word(word)
    value = word[1..]
    case word[0]
    when 'n' then value.to_i
    when 'h' then keep([value].pack('H*'))
    when 'f'
      program = [value].pack('H*')
      keep([program.bytesize / 8, keep(program)].pack('S x6 J'))
    when 'r' then ->(facts) { facts.fetch(value) }
    when 't'
      return value unless value.match?(/\{(id|host)\}/)
      ->(facts) { value.gsub(/\{(id|host)\}/) { facts.fetch($1).to_s } }
    else raise ArgumentError, 'a word of an unknown type'
    end
  end

  def keep(bytes)
    @kept << bytes
    place_of(bytes)
  end

  def call(name, *words) = syscall(@numbers.fetch(name), *words)

  # `syscall` takes no text with NUL in it.
  def place_of(bytes) = [bytes].pack('P').unpack1('J')

  def lay(steps, facts)
    steps.each do |kind, label, words|
      words = words.map { |word| word.is_a?(Proc) ? word.call(facts) : word }
      if kind == 'write'
        File.open(words[0], File::WRONLY) { |file| file.syswrite(words[1]) }
      else
        texts = words.grep(String).to_h { |text| [text, "#{text}\0"] }
        facts[label] = syscall(*words.map { |word| word.is_a?(String) ? place_of(texts[word]) : word })
      end
    rescue SystemCallError => error
      raise "#{label}: #{error.class.new.message}"
    end
  end

  # One slot: never sees a job, an output or an end. Returns in the program of a run.
  def serve_slot(orders, answers, script)
    # Nobody waits for PID 1 of a run. Not with `trap`: ruby would wait itself, and has its own handler for the program.
    ignored = [1].pack('J') + "\0" * 56
    @usual = "\0" * 64
    call(:rt_sigaction, @sigchld, place_of(ignored), place_of(@usual), 8)
    @home = IO.sysopen('/proc/self/ns/pid')
    answers.syswrite("#{Process.pid}\n")
    while true
      order = read_order(orders)
      begin
        ends = open_ends(order)
      rescue SystemCallError => error
        answers.syswrite("0 #{error.class.new.message}\n")
        next
      end
      pid = fork_inside
      unless pid
        orders.close
        answers.close
        return keep_run(order, ends, script)
      end
      close(ends)
      answers.syswrite("#{pid}\n")
    end
  end

  # In a PID namespace of its own. With clone(2) ruby would not know that it was forked, and could not do so again; `fork`
  # knows of no namespaces, so this process says where its next child belongs, and then takes that back.
  def fork_inside
    call(:unshare, @newpid)
    begin
      pid = fork
    rescue SystemCallError => error
      pid = "0 #{error.class.new.message}"
    end
    pid ? call(:setns, @home, @newpid) : call(:close, @home)
    pid
  end

  def read_order(orders)
    length = +''
    length << take(orders, 1) until length.end_with?("\n")
    take(orders, length.to_i).split("\0", -1)
  end

  def take(orders, size)
    bytes = +''
    while bytes.bytesize < size
      begin
        bytes << orders.sysread(size - bytes.bytesize)
      rescue Errno::EINTR
        retry
      rescue EOFError
        exit!(0)
      end
    end
    bytes
  end

  # As numbers: an object would close its descriptor whenever it is collected, whosever that is by then.
  def open_ends(order)
    order[1, 4].each_with_index.map do |number, index|
      IO.sysopen("/proc/#{order[0]}/fd/#{number}", index == 0 ? File::RDONLY : File::WRONLY)
    end
  end

  def close(ends) = ends.each { |number| call(:close, number) }

  # PID 1 of a run; returns in its program.
  def keep_run(order, ends, script)
    facts = { 'id' => order[5].to_i, 'host' => order[6], 'hostlen' => order[6].bytesize }
    call(:rt_sigaction, @sigchld, place_of(@usual), 0, 8)
    call(:unshare, @plan[:flags] & ~@newpid)
    lay(@plan[:first], facts)
    program = fork
    return become_program(order, ends, facts, script) unless program
    close(ends[0, 3])
    lay(@plan[:keeper], facts)
    tell(ends[3], "E#{wait_for(program)}")
    exit!(0)
  rescue Exception => error
    tell(ends[3], "F#{error.message}")
    exit!(@failed)
  end

  # Not `Process.wait`, which sleeps until a signal comes, and those are blocked here.
  def wait_for(program)
    status = "\0" * 8
    nil until call(:wait4, -1, place_of(status), 0, 0) == program
    status.unpack1('i')
  end

  def tell(status, words) = IO.for_fd(status, 'w', autoclose: false).syswrite(words)

  def become_program(order, ends, facts, script)
    # Below ruby's own objects, which so stay what they were.
    ends[0, 3].each_with_index { |from, to| call(:dup3, from, to, 0) }
    lay(@plan[:program], facts)
    Dir.chdir(@plan[:workdir])
    File.umask(0o022)
    # The file that was opened is in a folder that the walls have covered.
    File.binwrite($0, "\n", perm: 0o644)
    script.reopen($0)
    report(order[10, order[9].to_i]) if order[7] == 'report'
    close(ends)
  end

  def report(paths)
    paths.each do |path|
      text = begin
        File.binread(path)
      rescue SystemCallError => error
        "error: #{error.class.new.message}"
      end
      said = "#{path}\n#{text.bytesize}\n#{text}".b
      said = said.byteslice(STDOUT.syswrite(said)..) until said.empty?
    end
    exit!(0)
  end

  self
end
