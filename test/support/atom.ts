/** An entry of an Atom feed, as a reader shows it. */
interface AtomEntry {
  readonly id: string
  readonly title: string
  readonly content: string
}

/** Reads the entries of an Atom feed, in their order. */
export function atomEntries(feed: string): AtomEntry[] {
  return [...feed.matchAll(/<entry>([\s\S]*?)<\/entry>/g)].map(([, entry = '']) => ({
    id: elementOf(entry, 'id'),
    title: elementOf(entry, 'title'),
    content: elementOf(entry, 'content'),
  }))
}

function elementOf(entry: string, name: string): string {
  const [, text = ''] = new RegExp(`<${name}(?: [^>]*)?>([\\s\\S]*?)</${name}>`).exec(entry) ?? []
  return text.replace(/&(lt|gt|quot|#39|amp);/g, (_, reference: string) => CHARACTERS[reference] ?? '')
}

const CHARACTERS: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' }
