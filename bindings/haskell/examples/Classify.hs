-- | Classifies a picture: classify BUILD PICTURE.ppm
--
-- The picture is a binary PPM of the size that the model takes; pixels become numbers from 0 to 1.
module Main (main) where

import Control.Exception (catch)
import qualified Data.ByteString as B
import qualified Data.ByteString.Char8 as C
import Data.List (maximumBy)
import Data.Ord (comparing)
import Hagane
import System.Environment (getArgs)
import System.Exit (die)

readPicture :: FilePath -> Int -> Int -> IO Tensor
readPicture path height width = do
  file <- B.readFile path
  let area = height * width
      start = C.pack ("P6\n" ++ show width ++ " " ++ show height ++ "\n255\n")
      (header, pixels) = B.splitAt (B.length start) file
  if header /= start || B.length pixels /= 3 * area
    then die ("expected a PPM of " ++ show width ++ " x " ++ show height)
    else return $ fromList [1, 3, height, width]
      [ fromIntegral (B.index pixels (3 * i + channel)) / 255 :: Float
      | channel <- [0 .. 2], i <- [0 .. area - 1] ]

classify :: FilePath -> FilePath -> IO ()
classify build picture = withModel build $ \model -> do
  arguments <- inputs model
  case arguments of
    [Argument key 1 [1, 3, height, width] _] -> do
      pixels <- readPicture picture height width
      found <- run model [(key, pixels)]
      case found of
        (_, scores) : _ | Just numbers <- toList scores -> print (best numbers)
        _ -> die "expected scores in float32"
    _ -> die "expected a model of one picture, in float32"

best :: [Float] -> Int
best numbers = fst (maximumBy (comparing snd) (zip [0 ..] numbers))

main :: IO ()
main = do
  arguments <- getArgs
  case arguments of
    [build, picture] -> classify build picture `catch` \(HaganeError _ message) -> die message
    _ -> die "expected BUILD PICTURE.ppm"
