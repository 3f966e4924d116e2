/** What a JSON text is on its outside, found without holding it. */
export interface Outline {
  /** Whether every bracket and string is closed and nothing but JSON values and space is there. */
  sound: boolean
  /** Names at the top of the first value, each with its text when that is a short string, else null. */
  members: ReadonlyMap<string, string | null>
  /** JSON values one after the other: more than one in a file of JSON lines. */
  values: number
}

/** Longest name or text that is looked at, bytes. */
const LONGEST = 300
/** Deeper or wider than this is no document that anybody means, and its outline would grow with it. */
const MAX_DEPTH = 1000
const MAX_MEMBERS = 1000
const MARK = Buffer.from('\ufeff')

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const COMMA = 0x2c

/**
 * Reads a text of any size byte by byte, as it comes, and keeps only its outline. It checks structure, not grammar: a
 * document cut short, a page of HTML or plain text are told from JSON; a misspelt literal is not.
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
        // Most bytes say nothing: within a string that nobody looks at, and below the top.
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

/** The members of the object at the top. */
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
    /** A text between the signs: a name or a value. */
    text: (text: string | null): void => {
      if (awaiting === 'name') name = text
      else value(text)
    },
    /** A colon, a comma, or a byte of a number or literal. */
    sign: (byte: number): void => {
      if (byte === COLON && awaiting === 'name') awaiting = 'value'
      else if (byte === COMMA && awaiting === 'value') awaiting = 'name'
      else if (byte > 0x20) value(null)
    },
  }
}

/** One string token after the other; of those that matter the bytes are kept, up to a length. */
function createWord() {
  let isOpen = false
  let escaped = false
  let kept: number[] | null = null
  return {
    isOpen: (): boolean => isOpen,
    /** Whether nothing counts but where the token ends. */
    isIdle: (): boolean => isOpen && !escaped && (kept === null || kept.length > LONGEST),
    begin: (keep: boolean): void => {
      isOpen = true
      kept = keep ? [] : null
    },
    /** True when the byte ends the token. */
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

/** Passes over a mark of UTF-8 at the very start, as parsers do. */
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

/** The text of a string token's inside; null for one too long or misspelt. */
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

/** Where a quote or a backslash comes, or the end. */
function runOfText(bytes: Buffer, from: number): number {
  let at = from
  while (at < bytes.length && bytes[at] !== QUOTE && bytes[at] !== BACKSLASH) at++
  return at
}

/** Where a quote or a bracket comes, or the end. Brackets and braces differ in one bit, 0x20. */
function runOfValues(bytes: Buffer, from: number): number {
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    if (byte === QUOTE || (byte | 0x20) === 0x7b || (byte | 0x20) === 0x7d) return at
  }
  return bytes.length
}
