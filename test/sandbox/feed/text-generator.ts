import type { Random } from './random.ts'

const STEMS =
  'buffer overflow parser request remote attacker memory read write heap stack header token session ' +
  'server client proxy module library function argument crafted payload denial service arbitrary code ' +
  'execution privilege escalation path traversal injection query template sandbox escape validation ' +
  'certificate signature cipher handshake protocol packet stream decoder archive image font document ' +
  'integer underflow race condition pointer free double null dereference type confusion deserialization ' +
  'object prototype pollution regular expression backtracking cookie redirect origin policy script ' +
  'attribute element filter sanitizer encoding charset boundary length offset index table entry cache ' +
  'poisoning permission directory symlink temporary file upload download configuration default password ' +
  'credential leak disclosure information timing channel random entropy seed nonce key exchange kernel ' +
  'driver device socket descriptor process thread lock timeout resource exhaustion consumption loop ' +
  'recursion depth limit quota log terminal command shell environment variable user group local network'
const LINKS =
  'the a an in of to by when via with for before after through because under on from and or that which ' +
  'may could allows leads causes affects does not is was are fails handles accepts returns versions'
const ACCENTED = ['naïve', '“quoted”', 'Zoë', '漏洞', 'переполнение', '→', '—', '🛡', 'José', 'ﬁle']
const NOUNS = STEMS.split(' ')
const GLUE = LINKS.split(' ')

/** A sentence of a few words, ASCII. */
export function sentence(random: Random, nouns: readonly string[] = NOUNS): string {
  let text = capital(word(random, nouns))
  for (let left = random.between(4, 14); left > 0; left--) text += ' ' + word(random, nouns)
  return text + (random.chance(0.1) ? ', see `' + symbol(random, nouns) + '`.' : '.')
}

/**
 * Sentences and paragraphs of about `length` characters; a few carry letters beyond ASCII. A text
 * keeps to its own few words and repeats itself, so that it deflates as real advisories do.
 */
export function prose(random: Random, length: number): string {
  const foreign = random.chance(0.15)
  const nouns = Array.from({ length: 9 }, () => random.pick(NOUNS))
  const sentences = [sentence(random, nouns)]
  let text = ''
  while (text.length < length) {
    const next = random.chance(0.5) ? random.pick(sentences) : sentence(random, nouns)
    if (sentences.length < 40) sentences.push(next)
    text += next
    if (foreign && random.chance(0.3)) text += ' ' + random.pick(ACCENTED)
    text += random.chance(0.15) ? '\n\n' : ' '
  }
  return text.slice(0, Math.max(1, length)).trimEnd().toWellFormed()
}

function word(random: Random, nouns: readonly string[]): string {
  if (random.chance(0.4)) return random.pick(GLUE)
  if (random.chance(0.04)) return symbol(random, nouns)
  return random.pick(nouns)
}

/** Returns a text like an identifier or a hash, which compresses badly, as in real records. */
function symbol(random: Random, nouns: readonly string[]): string {
  const noun = random.pick(nouns)
  if (random.chance(0.5)) return `${noun}_${random.pick(nouns)}()`
  return `${noun}-${random.int(0x7fffffff).toString(36)}`
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
