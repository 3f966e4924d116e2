/*
 * Draws pairs of versions of an ecosystem, one a line: `node draw.ts Maven 300`. A program that the ecosystem itself is made
 * of judges them; the head of each fixture names it. Versions are made of slots, of which each has some texts to choose from:
 * what real versions have, and what lies at the edge of the grammar.
 */

const words = (texts: string): string[] => texts.split(' ').map((text) => (text === '-' ? '' : text))

const SEMVER = [
  words('0.0.0 0.1.0 0.1.10 1.0.0 1.2.3 1.2.10 1.10.0 2.0.0 10.0.0'),
  words(
    '- - - -0 -1 -2 -10 -alpha -alpha.1 -alpha.2 -alpha.10 -alpha1 -alpha.beta -beta -beta.2 -rc.1 -RC.1 -rc.1.0 -rc-1 -x.7.z.92 -0.3.7 -a--b',
  ),
  words('- - - +1 +2 +10 +build +build.1 +0'),
]
const DEB = [
  words('- - - - 0: 1: 2: 10:'),
  words('1.0 1.00 1.2.3 1.10 2.4 0.9 20230101 1.02 2.36 1a 1.0a 1.0.a 1.0+b'),
  words('- - - ~ ~~ ~rc1 ~beta ~beta1 ~rc10 +dfsg +dfsg1 +git20230101.1a2b +really1.0 .1 .0 a +'),
  words(
    '- - -0 -1 -2 -10 -1.1 -1~ -1~bpo11+1 -1+b1 -1+deb12u1 -1+deb12u2 -1+deb12u10 -0ubuntu1 -0ubuntu1.2 -0ubuntu0.22.04.1 -1build1',
  ),
]

const GRAMMARS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  Debian: DEB,
  opam: [words('0 1 1.0 1.2.3 1.10 4.05.0 4.14.1 v0.12.0 v0.16.3 20230101'), ...DEB.slice(2)],
  'Red Hat': [
    words('- - - 0: 1: 2:'),
    words('1.0 1.00 1.2.3 1.10 2.4 0.9 20230101 1.0a 1a 1.0.a 1_0 1+0 1.0. 4.18.0'),
    words('- - - ~ ~rc1 ~rc2 ~rc10 ~~ ^ ^git1 ^git10 ^20230101 ~rc1^git1 ^git1~pre .1 p1 a B'),
    words('- -1 -2 -10 -1.el8 -1.el8_6 -1.el8_10 -1.fc38 -150300.3.1 -150300.3.10 -1~x -1^y -0 -01'),
  ],
  Alpine: [
    words('0 1 1.0 1.2 1.2.0 1.2.3 1.10 1.05 1.005 1.050 01.2 2.36 20230101'),
    words('- - - - a b z'),
    words(
      '- - _alpha _alpha0 _alpha1 _alpha10 _beta _beta2 _pre1 _rc _rc1 _rc2 _cvs1 _svn _git _git0 _git20230101 _git20240101 _hg1 _p _p1 _p10',
    ),
    words('- - - - - _p1 _alpha _git20230101 _rc1 _p0'),
    words('- - - ~1a2b3c ~1a2b3d ~0 ~ffffffffff ~1a'),
    words('- -r0 -r0 -r1 -r2 -r10 -r00071 -r10071'),
  ],
  PyPI: [
    words('- - - - 0! 1! v'),
    words('1 1.0 1.0.0 1.2.3 1.10 0.9 2012.4 01.2 1.02 1.0.0.0.1'),
    words('- - - a1 .a1 -a.1 alpha1 b2 beta2 rc1 c1 -rc.1 RC1 pre1 rc a a0 _rc_1'),
    words('- - - - .post1 -1 .post .post0 -r5 .rev2 post1'),
    words('- - - - .dev1 .dev0 dev -dev2 .dev10'),
    words('- - - +abc +abc.5 +5 +root.io.1 +root.io.10 +ubuntu-1 +1_2 +ABC +0'),
  ],
  Maven: [
    words('1 1.0 1.0.0 1.2.3 1.10 9.0.0 4.2.1 0 2.0.20020914 01.2 1..2 1.0.9.3'),
    words(
      '- - - - .M1 -M1 -M11 .M9 .RC1 -RC2 RC1 .CR2 -rc-1 .Final .RELEASE -GA .GA -alpha -alpha-1 .alpha1 -a1 a1 .beta-2 -beta2 b2 -SNAPSHOT .SNAPSHOT -sp -sp-1 .SP1 .SP',
    ),
    words(
      '- - - - - -jre -android -jre14 .v20180101 -root.io.1 -root.io.10 .redhat-00001 -1 -2 .1 .0 -0 -foo .foo -foo1 x -x.1 -r .Final-redhat-2 -SNAPSHOT -20230101.101010-1',
    ),
  ],
  RubyGems: [
    words('0 1 1.0 1.0.0 1.2.3 1.10 2.0.0.0 01.2 3.4.0.1'),
    words(
      '- - - - .pre .pre1 .pre.1 .a .a1 .a.1 .b10 .rc1 .rc.1 .RC1 .beta .beta.2 a1 .alpha.1.0 .dev -1 -rc1 -rc.1 -a-b .0.a .9007199254740993 .9007199254740992',
    ),
    words('- - - - .1 .0 .10 .x'),
  ],
  'RubyGems of a lockfile': [
    words('1 1.0 1.0.0 1.2.3 1.10 1.16.0 1.16.0.rc1 2.0.0.pre'),
    words(
      '- - -java -ruby -x86_64-linux -x86_64-linux-gnu -x86_64-linux-musl -aarch64-linux -arm64-darwin -arm64-darwin-23 -x86_64-darwin-20 -x64-mingw-ucrt -x64-mingw32 -x86-mingw32 -mingw32 -mswin32 -universal-darwin -arm-linux-gnueabihf -x86-mswin32-60 -jruby -x86-linux -universal-java-11',
    ),
  ],
  NuGet: [
    words('1.0 1.0.0 1.0.0.0 1.2.3 1.2.3.4 1.10.0 1.2.3.10 01.2.3 2.0 0.0.1 1'),
    words(
      '- - - -alpha -ALPHA -alpha.1 -alpha.10 -beta -Beta.2 -rc -rc.1 -rc1 -rc10 -1 -10 -0 -preview.9.1 -a-b -x.Y.z -ci0001',
    ),
    words('- - - +sha +1 +SHA.2'),
  ],
  Packagist: [
    words(
      '1 1.0 1.0.0 1.0.0.0 v1.0 1.2.3 v1.2.3 1.10 2.0.1.5 0.9 20230101 2023.01.02 2023-01-02 20230101.120000 12345 1.0.0.1',
    ),
    words(
      '- - - - -alpha -alpha1 -alpha.1 alpha1 a1 -a.2 -beta -beta2 b3 -RC1 -rc1 .RC2 -RC.10 rc -patch1 -p1 pl2 -pl10 -stable .stable _beta1 -beta-2 -beta.2.1',
    ),
    words('- - - - - -dev .dev dev +build +1 @beta @dev .x-dev .1.x-dev'),
  ],
  'crates.io': SEMVER,
  Go: [
    ...SEMVER.slice(0, 2).map((slot) => slot.map((text) => text)),
    words('- - - - +incompatible -0.20190101000000-aaaaaaaaaaaa .0.20200101000000-bbbbbbbbbbbb'),
  ],
  Hex: SEMVER,
  CRAN: [
    words('0.1 0.01 1.0 1.0.0 1.2 1.2.3 1.10 2.0 20230101.1 1.0.0.0'),
    words('- - -1 -2 -10 -01 .1 .0 .9000 -3.1'),
  ],
  Hackage: [words('0 1 0.1 1.0 1.0.0 1.2.3 1.10 0.1.0.0 0.20110401 5.20140919'), words('- - .1 .0 .10 .3.1')],
  Bitnami: [
    words('0.1.0 1.0.0 1.2.3 1.2.10 1.10.0 2.0.0 15.0.0'),
    words('- - - -0 -1 -2 -4 -10 -r0 -r4 -r10 -rc.1 -debian-12-r4 -debian-12-r10 -photon-4-r1 -4.1 -alpha'),
    words('- - - +1 +build'),
  ],
}

/** Draws a version as the texts of its slots, then the same with one or two slots drawn again. */
function drawPair(slots: readonly (readonly string[])[], dice: (below: number) => number): string {
  const draw = (slot: readonly string[]): string => slot[dice(slot.length)] ?? ''
  const one = slots.map(draw)
  const other = [...one]
  for (let times = 1 + dice(2); times > 0; times--) {
    const place = dice(slots.length)
    other[place] = draw(slots[place] ?? [])
  }
  return `${one.join('')} ${other.join('')}`
}

/** Creates a generator of whole numbers below a bound, the same on each run, of a long period. */
function createLongDice(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

function drawPairs(ecosystem: string, count: number): Set<string> {
  const slots = GRAMMARS[ecosystem]
  if (slots === undefined) throw new Error(`no grammar of ${ecosystem}`)
  const dice = createLongDice(ecosystem.length * 7919)
  const pairs = new Set<string>()
  for (let tries = 0; pairs.size < count && tries < count * 100; tries++) {
    const pair = drawPair(slots, dice)
    const [one, other] = pair.split(' ')
    if (one !== other) pairs.add(pair)
  }
  return pairs
}

const [ecosystem = '', count = '300'] = process.argv.slice(2)
process.stdout.write([...drawPairs(ecosystem, Number(count))].join('\n') + '\n')
