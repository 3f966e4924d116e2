/** Structure of a JSON text, found without storing the text. */
export interface Outline {
  /** Whether every bracket and string is closed and the text contains only JSON values and white space. */
  sound: boolean
  /**
   * Member names of the first value, or of the first object in it when it is a list, each with its text when that is a
   * short string, otherwise null.
   */
  members: ReadonlyMap<string, string | null>
  /** Number of consecutive JSON values: more than one in JSON lines. */
  values: number
  /** Whether the first value is a list. */
  list: boolean
}

/** Maximum length of a name or text that is read, bytes. */
const LONGEST = 300
/** Maximum nesting and members: more than any real document has; they bound the memory of the outline. */
const MAX_DEPTH = 1000
const MAX_MEMBERS = 1000
const MARK = Buffer.from('\ufeff')

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const COMMA = 0x2c

/**
 * Reads a text of any size byte by byte and stores only its outline. It checks structure, not grammar: it recognises
 * a truncated document, HTML or plain text, but not a misspelt literal.
 */
export function createOutline(): { write(bytes: Buffer): void; end(): Outline } {
  const top = createTop()
  const text = createText()
  const nesting = createNesting()
  const skipMark = createMark()
  let sound = true

  const openBracket = (byte: number): void => {
    if (nesting.isTop()) top.value(null)
    sound &&= nesting.open(byte)
    if (nesting.isTop()) top.open(byte === 0x7b)
  }
  const closeBracket = (byte: number): void => void (sound &&= nesting.close(byte))
  /** Takes a byte outside the values that are skipped. */
  const structure = (byte: number): void => {
    if (byte === QUOTE) {
      nesting.text()
      text.begin(nesting.isTop())
    } else if (isOpening(byte)) openBracket(byte)
    else if (isClosing(byte)) closeBracket(byte)
    else if (nesting.isTop()) top.sign(byte)
    else if (nesting.isOutside() && byte > 0x20) sound = false
  }
  /** Skips what is not a member that is read, of which only strings and brackets count. */
  const skipValues = (bytes: Buffer, from: number): number => {
    for (let at = from; at < bytes.length; at++) {
      const byte = bytes[at] ?? 0
      if (byte === QUOTE) {
        at = endOfText(bytes, at + 1)
        if (at < bytes.length) continue
        text.skip(at > bytes.length)
        return at
      }
      if (isOpening(byte)) openBracket(byte)
      else if (isClosing(byte)) closeBracket(byte)
      else continue
      if (!sound || nesting.isOutside() || nesting.isTop()) return at + 1
    }
    return bytes.length
  }
  return {
    write(bytes) {
      let at = skipMark(bytes)
      if (at < 0) sound = false
      while (at < bytes.length && sound) {
        if (text.isOpen()) {
          at = text.read(bytes, at)
          if (!text.isOpen() && nesting.isTop()) top.text(text.value())
        } else if (!nesting.isOutside() && !nesting.isTop()) at = skipValues(bytes, at)
        else structure(bytes[at++] ?? 0)
      }
    },
    end() {
      const values = nesting.values()
      sound &&= !text.isOpen() && nesting.isOutside() && values > 0
      return { sound, members: top.members, values, list: nesting.isList() }
    },
  }
}

/** Follows brackets, and at which nesting the members are that are read: in the first value, or the first object of a list. */
function createNesting() {
  const open: number[] = []
  let values = 0
  let isList = false
  let level = 1 // 0: the members have been read
  const isTop = (): boolean => level > 0 && open.length === level && values === 1
  return {
    isTop,
    isOutside: (): boolean => open.length === 0,
    isList: (): boolean => isList,
    values: (): number => values,
    /** Takes the beginning of a string. */
    text(): void {
      if (open.length === 0) values++
    },
    /** Takes an opening bracket; false: it is nested too deeply. */
    open(byte: number): boolean {
      if (open.length === MAX_DEPTH) return false
      if (open.length === 0 && ++values === 1) isList = byte === 0x5b
      else if (isList && isTop()) level = byte === 0x7b ? 2 : 0
      open.push(byte + 2) // its closing bracket
      return true
    },
    /** Takes a closing bracket; false: another one was expected. */
    close(byte: number): boolean {
      const isExpected = open.pop() === byte
      if (level === 2 && open.length < level) level = 0
      return isExpected
    },
  }
}

/** Brackets and braces differ in one bit, 0x20. */
const isOpening = (byte: number): boolean => (byte | 0x20) === 0x7b
const isClosing = (byte: number): boolean => (byte | 0x20) === 0x7d

/**
 * Returns the position of the quote that ends a string; where there is none, the length of the bytes, or one more when the
 * last byte escapes the next.
 */
function endOfText(bytes: Buffer, from: number): number {
  let at = from
  for (; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === QUOTE) return at
    if (byte === BACKSLASH) at++
  }
  return at
}

/** Collects the members of the top-level object. */
function createTop() {
  const members = new Map<string, string | null>()
  let name: string | null = null
  let awaiting: 'name' | 'value' | null = null
  const value = (text: string | null): void => {
    if (awaiting !== 'value' || name === null) return
    if (members.size < MAX_MEMBERS || members.has(name)) members.set(name, text)
  }
  return {
    members,
    value,
    open: (object: boolean): void => {
      awaiting = object ? 'name' : null
    },
    /** Takes a string: a name or a value. */
    text: (text: string | null): void => {
      if (awaiting === 'name') name = text
      else value(text)
    },
    /** Takes a colon, a comma, or a byte of a number or literal. */
    sign: (byte: number): void => {
      if (byte === COLON && awaiting === 'name') awaiting = 'value'
      else if (byte === COMMA && awaiting === 'value') awaiting = 'name'
      else if (byte > 0x20) value(null)
    },
  }
}

/** Reads string tokens, also across chunk boundaries; stores the bytes of relevant ones, up to a length. */
function createText() {
  let isOpen = false
  let escaped = false // the next byte, whatever it is, belongs to the string
  let kept: Buffer | null = null
  return {
    isOpen: (): boolean => isOpen,
    begin: (keep: boolean): void => {
      isOpen = true
      kept = keep ? NOTHING : null
    },
    /** Begins within a string of which only the end matters. */
    skip: (isEscaped: boolean): void => {
      isOpen = true
      escaped = isEscaped
      kept = null
    },
    /** Reads up to the end of the string, or of the bytes. Returns the position after it. */
    read(bytes: Buffer, from: number): number {
      const end = endOfText(bytes, escaped ? from + 1 : from)
      isOpen = end >= bytes.length
      escaped = end > bytes.length
      if (kept !== null && kept.length <= LONGEST) {
        const more = bytes.subarray(from, Math.min(end, from + LONGEST + 1))
        const whole = !isOpen && kept === NOTHING
        kept = whole ? more : Buffer.concat([kept, more]) // a copy, as the chunk may change
      }
      return end + 1
    },
    /** The text of the string that ended last; null: it is not relevant, too long or invalid. */
    value: (): string | null => (kept === null ? null : decode(kept)),
  }
}

const NOTHING = Buffer.alloc(0)

/**
 * Skips a byte order mark at the very start, as parsers do. Returns the position after it; -1: another byte follows the
 * beginning of a mark.
 */
function createMark(): (bytes: Buffer) => number {
  let at = 0
  return (bytes) => {
    let from = 0
    while (at < MARK.length && from < bytes.length) {
      if (bytes[from] === MARK[at]) {
        at++
        from++
      } else if (at > 0) return -1
      else at = MARK.length
    }
    return from
  }
}

/** Decodes the inside of a string token; null for one that is too long or invalid. */
function decode(bytes: Buffer): string | null {
  if (bytes.length > LONGEST) return null
  const raw = bytes.toString('utf8')
  if (!raw.includes('\\')) return raw
  try {
    return String(JSON.parse(`"${raw}"`))
  } catch {
    return null
  }
}
