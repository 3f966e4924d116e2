import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { IMAGE_FORMATS } from '../../../src/features/images/formats.ts'

const SNAPSHOT = '0123456789abcdef'.repeat(4)
const DIGEST = `sha256:${'ab'.repeat(32)}`
const IMAGE = { repository: 'r.example:5000/library/python', tag: '3.13', digest: DIGEST }
const NAME = `r.example:5000/library/python@${DIGEST}`
/** The name of a package or a component, by the schema of Zarf, and of an object, by that of Kubernetes. */
const OBJECT_NAME = /^[a-z0-9][a-z0-9-]*$/

/** Where each format has its images, by the types or the schema that its tool publishes. */
const SHAPES: Readonly<Record<string, (images: readonly string[]) => object>> = {
  hauler: (images) => ({
    apiVersion: 'content.hauler.cattle.io/v1',
    kind: 'Images',
    metadata: { name: expect.stringMatching(OBJECT_NAME) as string },
    spec: { images: images.map((name) => ({ name })) },
  }),
  zarf: (images) => ({
    kind: 'ZarfPackageConfig',
    metadata: { name: expect.stringMatching(OBJECT_NAME) as string },
    components: [{ name: 'images', required: true, images }],
  }),
  'oc-mirror': (images) => ({
    kind: 'ImageSetConfiguration',
    apiVersion: 'mirror.openshift.io/v2alpha1',
    mirror: { additionalImages: images.map((name) => ({ name })) },
  }),
}

test.each(Object.entries(SHAPES))(
  'a list for %s has its images in a list, also when there are none',
  (format, shape) => {
    const written = (images: readonly (typeof IMAGE)[]): unknown =>
      parse(IMAGE_FORMATS[format]?.(images, SNAPSHOT).join('\n') ?? '')
    expect(written([IMAGE, { ...IMAGE, tag: 'latest' }])).toEqual(shape([NAME]))
    expect(written([])).toEqual(shape([]))
  },
)
