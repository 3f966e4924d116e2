import { JSON_FLAG, type VerbPart } from '../../cli/verbs/verb.ts'
import type { Feature } from '../../daemon/feature.ts'
import { IMAGE_FORMATS } from './formats.ts'

/** The command of this feature. */
const IMAGES_VERBS: readonly VerbPart[] = [
  {
    path: 'images',
    summary: 'the images by digest, for the tools that copy them',
    options: [
      ['--since <time>', 'those of tags new or changed since a date, a time, 7d, or a snapshot'],
      ['--format <name>', `for this tool: ${Object.keys(IMAGE_FORMATS).join(', ')}; default: text`],
      ['--rewrite <from=to>', 'begin names with TO in place of FROM; "=registry.example.com/" names the registry'],
      [
        '--check [registry/prefix]',
        'look which of them this registry has, default: images.registry; with --format: list the others for that tool',
      ],
      JSON_FLAG,
    ],
    after: '\nExit code 3: the catalog is not complete here, or the registry lacks an image or cannot be asked.',
    example: 'images --format skopeo --rewrite =registry.example.com/',
    load: async () => (await import('./command.ts')).imagesCommand,
  },
]

/** Lists the images of the mirrored catalog for the tools that copy them, and looks which of them a registry has: the command once, the daemon again and again. */
export const images: Feature = {
  name: 'images',
  needs: ['bundles', 'lookup'],
  verbs: { ask: IMAGES_VERBS },
  commands: async () => ({ statusLines: (await import('./command.ts')).describeKept }),
  daemon: async () => ({ start: (await import('./start.ts')).startRegistryCheck }),
}
