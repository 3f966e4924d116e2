/** What differs from run to run, and what stands for it when two outputs are compared. */
const CHANGING: readonly (readonly [pattern: RegExp, text: string])[] = [
  [/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z| UTC)?/g, '<time>'],
  [/\b(?:pmk|whsec)_[\w+/=-]+…?/g, '<secret>'],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, '<id>'],
  [/\b(?=[a-f]*\d)[0-9a-f]{10,}\b/g, '<digest>'],
  [/\b\d[\d,.]*(?: ?(?:ms|s|min|h|d|bytes|KB|MB)\b)?/g, '<number>'],
  [/(?:<number> )+/g, '<number> '],
  [/[ \t]+/g, ' '],
]

/** Lines of an output in which what changes is replaced, without empty ones. */
function linesOf(text: string): string[] {
  const plain = CHANGING.reduce((before, [pattern, word]) => before.replaceAll(pattern, word), text)
  return plain
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('{"level":'))
}

/** Compares what a page shows with what was written; `…` alone in a line stands for any lines. Returns both where they differ. */
export function compareShown(shown: string, out: string): { shown: string[]; out: string[] } | null {
  const expected = linesOf(shown)
  const written = linesOf(out)
  const escaped = (line: string): string => line.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('…', '.*')
  const pattern = expected.map((line) => (line === '…' ? '(?:.*\n)*?' : `${escaped(line)}\n`)).join('')
  return new RegExp(`^${pattern}$`).test(written.map((line) => `${line}\n`).join(''))
    ? null
    : { shown: expected, out: written }
}
