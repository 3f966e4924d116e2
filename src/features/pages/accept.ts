/** Longest `Accept` value that is read, in characters; a longer one gets JSON. */
const MAX_LENGTH = 2048

/**
 * Reports whether an `Accept` value prefers an HTML page to JSON, as those of browsers do: it names HTML, and gives
 * JSON no higher weight. Programs that send none, or a wildcard alone, get JSON.
 */
export function prefersHtml(accept: string | undefined): boolean {
  if (accept === undefined || accept.length > MAX_LENGTH) return false
  const ranges = new Map(accept.split(',').map(readRange))
  const html = Math.max(...HTML.map((type) => ranges.get(type) ?? 0))
  const json = ranges.get('application/json') ?? 0
  return html > 0 && (html > json || (html === json && comesFirst(accept)))
}

const HTML = ['text/html', 'application/xhtml+xml']

/** Reports whether HTML is named before JSON: equal weights give no other preference. */
function comesFirst(accept: string): boolean {
  const text = accept.toLowerCase()
  const places = HTML.map((type) => text.indexOf(type)).filter((at) => at >= 0)
  return Math.min(...places) < text.indexOf('application/json')
}

function readRange(item: string): [type: string, weight: number] {
  const [type = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase())
  const given = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2)
  return [type, weightOf(given)]
}

function weightOf(given: string | undefined): number {
  if (given === undefined) return 1
  return /^(0(\.\d*)?|1(\.0*)?)$/.test(given) ? Number(given) : 0
}
