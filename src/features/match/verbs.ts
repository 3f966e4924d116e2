import { JSON_FLAG, type Verb } from '../../cli/verbs/verb.ts'

/** The commands of this feature. */
export const MATCH_VERBS: readonly Verb[] = [
  {
    path: 'match',
    arguments: '<sbom>',
    summary: 'the vulnerabilities of an SBOM, or of a mirrored tag',
    options: [
      ['--format <name>', 'table (the default), json, cyclonedx (a vulnerability disclosure report) or sarif'],
      JSON_FLAG,
      [
        '--fail-on <kind>',
        'exit with 1 for findings of a kind: any, fixable (a fix is known), high (or critical), critical; or for unjudged packages',
      ],
      [
        '--distro <name>',
        'the distribution and release of packages for which the SBOM names none, such as debian-12 or jammy',
      ],
      ['--no-vex', 'do not apply the mirrored VEX: what it rules out is among the findings'],
    ],
    after:
      '\nThe SBOM is a file of CycloneDX or SPDX, as JSON, - for standard input, or the mirrored\nSBOM of a tag by its name, such as library/python:3.12.',
    example: 'match sbom.cdx.json --fail-on fixable',
    load: async () => (await import('./cli/match.ts')).matchCommand,
  },
  {
    path: 'vex',
    arguments: '<image>',
    summary: 'what the mirrored VEX says of one image, as OpenVEX',
    after: '\nThe image by its digest, or by a tag, its name or id.',
    options: [
      ['--name <repositories>', 'further repositories under which the image is scanned, separated by commas'],
      [
        '--components',
        'name components as products as well, for "trivy sbom" of this image: it rules them out in others too',
      ],
      JSON_FLAG,
    ],
    example: 'vex library/python:3.12',
    load: async () => (await import('./cli/vex.ts')).vexCommand,
  },
]
