/** Returns JSON in UTF-8 as text, without the byte order mark that some programs begin a file with. */
export function jsonTextOf(bytes: Buffer): string {
  const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
  return bytes.toString('utf8', hasMark ? 3 : 0)
}
