/** Whether JSON in UTF-8 begins with a byte order mark, as files of some programs do. */
export function hasMark(bytes: Uint8Array): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
}

/** Returns JSON in UTF-8 as text, without the byte order mark. */
export function jsonTextOf(bytes: Buffer): string {
  return bytes.toString('utf8', hasMark(bytes) ? 3 : 0)
}
