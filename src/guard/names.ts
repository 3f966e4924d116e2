import type { PackageName } from '../documents/differences/facts.ts'

/** Characters that are not seen: controls, marks of direction, joiners, variation selectors, fillers and strange spaces. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/u
/** Letters of writings that have letters which look like Latin ones. */
const LOOK_ALIKE = /[\p{sc=Cyrl}\p{sc=Grek}\p{sc=Armn}\p{sc=Cher}\p{sc=Copt}\p{sc=Lisu}]/u
const ASCII = /^[\x20-\x7e]*$/

/** Letters of other writings that look like a Latin one (Unicode technical standard 39), and what they look like. */
const LETTERS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    a: 'аαɑ',
    b: 'Ьƅв',
    c: 'сϲⅽ',
    d: 'ԁⅾɗ',
    e: 'еҽєε',
    f: 'ſƒ',
    g: 'ɡց',
    h: 'һհ',
    i: 'іιıɩⅰ',
    j: 'јϳ',
    k: 'κкқ',
    l: 'ӏⅼ|ǀ',
    m: 'мⅿ',
    n: 'ոηп',
    o: 'оοօσ०',
    p: 'рρ',
    q: 'ԛգ',
    r: 'гᴦ',
    s: 'ѕꜱ',
    t: 'тτ',
    u: 'υսᴜ',
    v: 'νѵⅴ',
    w: 'ԝѡա',
    x: 'хχⅹ',
    y: 'уүγ',
    z: 'ᴢ',
    '-': '‐‑‒–—−﹣',
    '.': '․。',
    '/': '⁄∕',
    ':': 'ː։׃',
  }).flatMap(([latin, others]) => Array.from(others).map((one): [string, string] => [one, latin])),
)

/** Groups of Latin signs that look alike; what a name is compared by has the first of each. */
const SIGNS: readonly (readonly [RegExp, string])[] = [
  [/rn/g, 'm'],
  [/vv/g, 'w'],
  [/cl/g, 'd'],
  [/[1i|]/g, 'l'],
  [/0/g, 'o'],
  [/5/g, 's'],
  [/_/g, '-'],
]

/** Returns why a name disguises another one by its characters alone; null: it does not. */
export function disguiseIn(name: string): string | null {
  if (ASCII.test(name)) return null
  if (INVISIBLE.test(name)) return `an invisible character in ${escaped(name)}`
  if (name.normalize('NFKC') !== name.normalize('NFC')) return `a stylized letter in ${escaped(name)}`
  if (LOOK_ALIKE.test(name) && /[a-z]/i.test(name)) return `letters of several writings in ${escaped(name)}`
  return null
}

/** Returns a text that is equal for names that look alike. */
function skeletonOf(name: string): string {
  const visible = name.normalize('NFKD').replace(new RegExp(INVISIBLE, 'gu'), '')
  const letters = Array.from(visible.toLowerCase())
    .map((one) => LETTERS.get(one) ?? one)
    .join('')
  const plain = letters.normalize('NFKD').replace(/\p{M}/gu, '')
  return SIGNS.reduce((text, [sign, instead]) => text.replace(sign, instead), plain).trim()
}

/** Returns which of the names that came look like one that went, or have strange characters. */
export function disguisesIn(gone: readonly PackageName[], come: readonly PackageName[]): string | null {
  const before = new Map(gone.flatMap(textsOf).map((text) => [skeletonOf(text), text]))
  const known = new Set(gone.flatMap(textsOf))
  for (const text of come.flatMap(textsOf)) {
    if (known.has(text)) continue
    const strange = disguiseIn(text)
    if (strange !== null) return strange
    const other = before.get(skeletonOf(text))
    if (other !== undefined && !isOtherCase(text, other)) return `${escaped(text)} looks like ${escaped(other)}`
  }
  return null
}

/** Another letter case, or `_` for `-`, is no disguise: ecosystems write names in several ways. */
function isOtherCase(one: string, other: string): boolean {
  const plain = (text: string): string => text.toLowerCase().replaceAll('_', '-')
  return plain(one) === plain(other)
}

function textsOf({ ecosystem, name }: PackageName): string[] {
  return [ecosystem, name]
}

/** Shows what is not plain ASCII by its number. */
function escaped(text: string): string {
  const shown = Array.from(text.slice(0, 100)).map((one) =>
    ASCII.test(one) ? one : `<U+${(one.codePointAt(0) ?? 0).toString(16).toUpperCase()}>`,
  )
  return shown.join('')
}
