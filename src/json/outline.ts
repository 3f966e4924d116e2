/** Structure of a JSON text, found without storing the text. */
export interface Outline {
  /** Whether every bracket and string is closed and the text contains only JSON values and white space. */
  sound: boolean
  /** Member names of the first value, each with its text when that is a short string, otherwise null. */
  members: ReadonlyMap<string, string | null>
  /** Number of consecutive JSON values: more than one in JSON lines. */
  values: number
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
  const word = createWord()
  const skipMark = createMark()
  const open: number[] = []
  let values = 0
  let sound = true

  const structure = (byte: number): void => {
    const atTop = open.length === 1 && values === 1
    if (byte === QUOTE) {
      if (open.length === 0) values++
      word.begin(atTop)
    } else if (byte === 0x7b || byte === 0x5b) {
      if (atTop) top.value(null)
      if (open.length === 0) values++
      if (open.length === MAX_DEPTH) sound = false
      else open.push(byte + 2) // its closing bracket
      if (open.length === 1 && values === 1) top.open(byte === 0x7b)
    } else if (byte === 0x7d || byte === 0x5d) {
      if (open.pop() !== byte) sound = false
    } else if (atTop) top.sign(byte)
    else if (open.length === 0 && byte > 0x20) sound = false
  }
  return {
    write(bytes) {
      let at = 0
      while (at < bytes.length && sound) {
        // Most bytes are irrelevant: within skipped strings, and below the top level.
        if (word.isIdle()) at = runOfText(bytes, at)
        else if (!word.isOpen() && open.length > 1) at = runOfValues(bytes, at)
        const byte = bytes[at++]
        if (byte === undefined) return
        const mark = skipMark(byte)
        if (mark === 'broken') sound = false
        else if (mark === 'passed' && !word.isOpen()) structure(byte)
        else if (mark === 'passed' && word.take(byte) && open.length === 1 && values === 1)
          top.text(word.text())
      }
    },
    end: () => {
      const whole = sound && !word.isOpen() && open.length === 0 && values > 0
      return { sound: whole, members: top.members, values }
    },
  }
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

/** Reads string tokens; stores the bytes of relevant ones, up to a length. */
function createWord() {
  let isOpen = false
  let escaped = false
  let kept: number[] | null = null
  return {
    isOpen: (): boolean => isOpen,
    /** Whether only the end of the token matters. */
    isIdle: (): boolean => isOpen && !escaped && (kept === null || kept.length > LONGEST),
    begin: (keep: boolean): void => {
      isOpen = true
      kept = keep ? [] : null
    },
    /** Returns true when the byte ends the token. */
    take: (byte: number): boolean => {
      if (!escaped && byte === QUOTE) {
        isOpen = false
        return true
      }
      escaped = !escaped && byte === BACKSLASH
      if (kept !== null && kept.length <= LONGEST) kept.push(byte)
      return false
    },
    text: (): string | null => (kept === null ? null : decode(kept)),
  }
}

/** Skips a byte order mark at the very start, as parsers do. */
function createMark(): (byte: number) => 'within' | 'passed' | 'broken' {
  let at = 0
  return (byte) => {
    if (at === MARK.length) return 'passed'
    if (byte === MARK[at]) {
      at++
      return 'within'
    }
    const begun = at > 0
    at = MARK.length
    return begun ? 'broken' : 'passed'
  }
}

/** Decodes the inside of a string token; null for one that is too long or invalid. */
function decode(bytes: readonly number[]): string | null {
  if (bytes.length > LONGEST) return null
  const raw = Buffer.from(bytes).toString('utf8')
  if (!raw.includes('\\')) return raw
  try {
    return String(JSON.parse(`"${raw}"`))
  } catch {
    return null
  }
}

/** Returns the position of the next quote or backslash, or the end. */
function runOfText(bytes: Buffer, from: number): number {
  let at = from
  while (at < bytes.length && bytes[at] !== QUOTE && bytes[at] !== BACKSLASH) at++
  return at
}

/** Returns the position of the next quote or bracket, or the end. Brackets and braces differ in one bit, 0x20. */
function runOfValues(bytes: Buffer, from: number): number {
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    if (byte === QUOTE || (byte | 0x20) === 0x7b || (byte | 0x20) === 0x7d) return at
  }
  return bytes.length
}
