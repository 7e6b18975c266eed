# Builds the same image as the local cluster gets, for a registry. Made from
# the table of images by `go test ./images -update` in e2e; do not edit.
# Build it from the root of the repository:
#   docker build -f e2e/images/loadgen.Dockerfile .

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY . .
WORKDIR /src/e2e
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -buildid=" -o /load ./demo/load
RUN printf 'root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n' > /passwd \
 && printf 'root:x:0:\nnonroot:x:65532:\n' > /group

FROM scratch
COPY --from=build /passwd /group /etc/
COPY --from=build /load /load
USER 65532:65532
ENTRYPOINT ["/load"]
