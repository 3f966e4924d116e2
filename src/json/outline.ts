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

const QUOTE = 0x22
const BACKSLASH = 0x5c

/**
 * Reads a text of any size byte by byte, as it comes, and keeps only its outline. It checks structure, not grammar: a
 * document cut short, a page of HTML or plain text are told from JSON; a misspelt literal is not.
 */
export function createOutline(): { write(bytes: Buffer): void; end(): Outline } {
  const members = new Map<string, string | null>()
  const open: number[] = []
  let inString = false
  let escaped = false
  let text: number[] | null = null
  let name: string | null = null
  let awaiting: 'name' | 'value' | null = null
  let values = 0
  let sound = true

  const endString = (): void => {
    const word = text === null || text.length > LONGEST ? null : Buffer.from(text).toString('utf8')
    text = null
    if (open.length !== 1 || values !== 1) return
    if (awaiting === 'name') name = word
    else if (awaiting === 'value' && name !== null) members.set(name, word)
  }
  const string = (byte: number): void => {
    if (escaped) escaped = false
    else if (byte === BACKSLASH) escaped = true
    else if (byte === QUOTE) {
      inString = false
      return endString()
    }
    if (text !== null && text.length <= LONGEST) text.push(byte)
  }
  const structure = (byte: number): void => {
    if (byte === QUOTE) {
      inString = true
      text = open.length === 1 && values === 1 ? [] : null
      if (open.length === 0) values++
    } else if (byte === 0x7b || byte === 0x5b) {
      if (open.length === 0) values++
      if (open.length === 1 && values === 1 && awaiting === 'value' && name !== null)
        members.set(name, null)
      open.push(byte + 2) // its closing bracket
      if (open.length === 1) awaiting = byte === 0x7b ? 'name' : null
    } else if (byte === 0x7d || byte === 0x5d) {
      if (open.pop() !== byte) sound = false
    } else if (open.length === 1) {
      if (byte === 0x3a && awaiting === 'name') awaiting = 'value'
      else if (byte === 0x2c && awaiting === 'value') awaiting = 'name'
      else if (awaiting === 'value' && name !== null && byte > 0x20 && !members.has(name))
        members.set(name, null)
    } else if (open.length === 0 && byte > 0x20) sound = false
  }
  return {
    write(bytes) {
      let at = 0
      while (at < bytes.length) {
        // Most bytes say nothing: within a string that nobody looks at, and below the top.
        if (inString && text === null && !escaped) at = runOfText(bytes, at)
        else if (!inString && open.length > 1) at = runOfValues(bytes, at)
        const byte = bytes[at++]
        if (byte !== undefined) (inString ? string : structure)(byte)
      }
    },
    end: () => ({ sound: sound && !inString && open.length === 0 && values > 0, members, values }),
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
